"""A run that is killed and started again ends with the same store as one that was let be."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from varifold.bench.runner import Progress, run
from varifold.bench.store import ResultStore
from varifold.bench.study import define, study_table

TIMES = ("seconds", "wall", "cpu")
"""Fields of an outcome that differ from run to run."""
REPEATS = 10
MODELS = "olvf,arow:covariance=full,gated:Gated"
CELLS = 3 * REPEATS
ARGUMENTS = ["--data", "synthetic", "--models", MODELS, "--scenario", "vfs:0.5"]
GATED = """
import itertools, os, time
from pathlib import Path

from river.dummy import NoChangeClassifier


class Gated(NoChangeClassifier):
    # Starts to learn only with one of the numbered leaves that the file `limit` allows; waits for ever without.
    begun = False

    def learn_one(self, x, y):
        if not self.begun:
            self.begun = True
            parent = os.getppid()
            for number in itertools.count():
                while number >= int(Path("limit").read_text()):
                    if os.getppid() != parent:
                        os._exit(1)
                    time.sleep(0.01)
                try:
                    Path(f"leave-{number}").touch(exist_ok=False)
                    break
                except FileExistsError:
                    pass
        super().learn_one(x, y)
"""


def start(folder: Path, *more: str, limit: int = CELLS) -> subprocess.Popen[bytes]:
    (folder / "gated.py").write_text(GATED)
    (folder / "limit").write_text(str(limit))
    command = [sys.executable, "-m", "varifold", "bench", "run", *ARGUMENTS, "--store", "store.sqlite"]
    command += ["--repeats", str(REPEATS), *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def count(path: Path) -> int:
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outcome'").fetchone():
            return 0
        return int(db.execute("SELECT count(*) FROM outcome").fetchone()[0])


def content(path: Path) -> list[tuple[object, ...]]:
    """Return what does not depend on the machine: neither times nor memory."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(outcome)")]
        kept = [n for n in names if n not in (*TIMES, "memory", "finished")]
        rows = db.execute(f"SELECT {', '.join(kept)} FROM outcome ORDER BY model, seed").fetchall()
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return rows + db.execute("SELECT * FROM study").fetchall() + db.execute("SELECT * FROM failure").fetchall()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the store of a run that was not interrupted."""
    folder = tmp_path_factory.mktemp("finished")
    assert start(folder).wait() == 0
    return folder


@pytest.fixture(scope="module")
def whole(finished):
    rows = content(finished / "store.sqlite")
    assert len(rows) == CELLS + 1
    return rows


@pytest.mark.parametrize(
    ("kill", "more"),
    [
        (signal.SIGKILL, ()),
        (signal.SIGINT, ()),
        pytest.param(signal.SIGKILL, ("--jobs", "2"), marks=pytest.mark.slow),
    ],
)
def test_killed_and_started_again(tmp_path, whole, kill, more):
    path = tmp_path / "store.sqlite"
    for stage, limit in ((3, 3), (12, 8)):
        process = start(tmp_path, *more, limit=limit)
        while count(path) < stage and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(kill)
        code = process.wait()
        assert code == (-signal.SIGKILL if kill == signal.SIGKILL else 130)
        done = count(path)
        assert stage <= done < CELLS, "it was to be stopped in the middle"
    before = {row for row in content(path) if len(row) > 2}
    assert start(tmp_path, *more).wait() == 0
    assert before < set(content(path)), "a finished cell was lost or run again with another outcome"
    assert content(path) == whole


def test_nothing_is_run_twice(finished):
    path = finished / "store.sqlite"
    with ResultStore(path) as store:
        first = store.outcomes(None)
    assert start(finished).wait() == 0
    with ResultStore(path) as store:
        assert str(store.outcomes(None)) == str(first), "times would differ"


def test_no_time_is_left_when_all_cells_are_done(tmp_path: Path) -> None:
    study = study_table("", define(["synthetic"], None, "olvf,pa,arow", "none", 1, None))
    seen: list[Progress] = []
    with ResultStore(tmp_path / "store.sqlite") as store:
        run([study], store, progress=seen.append)
    assert [p.done for p in seen] == [1, 2, 3]
    assert seen[0].left
    assert seen[-1].left == 0.0
