"""A run that is killed and started again ends with the same store as one that was let be."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from varifold.bench.cell import TIMES
from varifold.bench.store import Store

REPEATS = 25
ARGUMENTS = ["--data", "synthetic", "--models", "olvf,arow:covariance=full", "--scenario", "vfs:0.5"]


def start(store: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "varifold", "bench", "run", *ARGUMENTS, "--store", str(store)]
    command += ["--repeats", str(REPEATS), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def count(path: Path) -> int:
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outcome'").fetchone():
            return 0
        return int(db.execute("SELECT count(*) FROM outcome").fetchone()[0])


def content(path: Path) -> list[tuple[object, ...]]:
    """Everything that does not tell the time."""
    with sqlite3.connect(path) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(outcome)")]
        kept = [n for n in names if n not in (*TIMES, "finished")]
        rows = db.execute(f"SELECT {', '.join(kept)} FROM outcome ORDER BY model, seed").fetchall()
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return rows + db.execute("SELECT * FROM study").fetchall() + db.execute("SELECT * FROM failure").fetchall()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "store.sqlite"
    assert start(path).wait() == 0
    found = content(path)
    assert len(found) == 2 * REPEATS + 1
    return found


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
    for stage in (3, 20):
        process = start(path, *more)
        while count(path) < stage and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(kill)
        code = process.wait()
        assert code == (-signal.SIGKILL if kill == signal.SIGKILL else 130)
        done = count(path)
        assert stage <= done < 2 * REPEATS, "it was to be stopped in the middle"
    before = {row for row in content(path) if len(row) > 2}
    assert start(path, *more).wait() == 0
    assert before < set(content(path)), "a finished cell was lost or run again with another outcome"
    assert content(path) == whole


def test_nothing_is_run_twice(tmp_path):
    path = tmp_path / "store.sqlite"
    assert start(path).wait() == 0
    with Store(path) as store:
        first = store.outcomes(None)
    assert start(path).wait() == 0
    with Store(path) as store:
        assert store.outcomes(None) == first, "times would differ"
