"""The store: what damage it reports, which files it rejects, and copies that are made while it is written."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.following import stored
from tests.serve.server import instance
from varifold import AROW, PerKey
from varifold.cli import main
from varifold.serve.core import database as store
from varifold.serve.core import learners, snapshot
from varifold.serve.core.database import Database
from varifold.serve.core.errors import DiskError, StateError
from varifold.serve.core.state import Limits, ModelState


def filled(folder: Path, changes: int = 40) -> ModelState:
    """Make a store with a model that has learned, keeps instances and knows ids; leave it as a crash would."""
    database = Database.open(folder)
    state = ModelState("m", learners.make("arow", {}), Limits())
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    learn(database, state, changes)
    shutil.copytree(folder, folder.with_name(f"{folder.name}-copy"), dirs_exist_ok=True)
    database.close()
    shutil.rmtree(folder)
    folder.with_name(f"{folder.name}-copy").rename(folder)
    return state


def learn(database: Database, state: ModelState, changes: int) -> None:
    for i in range(state.seq, state.seq + changes):
        body: dict[str, Any] = {**instance(i), "id": f"i{i}"}
        if i % 4 == 3:
            body = {"x": body["x"], "keep": True, "id": f"i{i}"}
        state.apply(body, orjson.dumps(body))
        written = state.take_unwritten()
        assert written is not None
        database.commit([written])


def content(state: ModelState) -> tuple[Any, ...]:
    row = state.row._replace(snapshot=0)
    return learners.digest(state.learner), row, state.waiting.dump(), dict(state.ids._known), state.monitor.dump()


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    state = filled(tmp_path / "s")
    found, recovery = stored(tmp_path / "s", "m")
    assert content(found) == content(state)
    assert recovery.replayed == 40


@pytest.mark.parametrize("checkpointed", [True, False], ids=["database", "log"])
def test_a_flipped_bit_is_reported_or_harmless(tmp_path: Path, checkpointed: bool) -> None:
    """Some bytes of the database or its log: the state is the one that was written, or an error says why not."""
    folder = tmp_path / "s"
    state = filled(folder)
    if checkpointed:
        Database(folder).close()
    expected = content(state)
    path = folder / (store.FILE if checkpointed else f"{store.FILE}-wal")
    whole = {each.name: each.read_bytes() for each in folder.iterdir()}
    reported = 0
    data = whole[path.name]
    for at in range(24, len(data), max(1, len(data) // 120)):
        for each in folder.iterdir():
            each.unlink()
        for name, old in whole.items():
            (folder / name).write_bytes(old)
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            found, recovery = stored(folder, "m")
        except StateError:
            reported += 1
        else:
            assert content(found) == expected, f"byte {at}"
            assert recovery.set_aside == []
    assert reported > 10


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_is_cut_or_missing_is_reported(tmp_path: Path, seed: int) -> None:
    filled(tmp_path / "s")
    path = tmp_path / "s" / f"{store.FILE}-wal"
    data = path.read_bytes()
    if seed == 0:
        path.unlink()
    else:
        path.write_bytes(data[: random.Random(seed).randrange(len(data))])
    with pytest.raises(StateError, match=r"ends at transaction [\d,]+, but [\d,]+ were acknowledged"):
        stored(tmp_path / "s", "m")
    (tmp_path / "s" / "state.count").unlink()  # what the message says: to go on without the missing changes
    if seed != 0:
        found, _ = stored(tmp_path / "s", "m")
        assert found.seq < 40


def test_a_transaction_that_was_not_finished_leaves_no_trace(tmp_path: Path) -> None:
    """After a loss of power the log may hold a part of a transaction that nobody was told of."""
    database = Database.open(tmp_path / "s")
    state = ModelState("m", learners.make("arow", {}), Limits())
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    learn(database, state, 5)
    before, expected = tmp_path / "before", content(state)
    shutil.copytree(tmp_path / "s", before)
    learn(database, state, 1)
    name = f"{store.FILE}-wal"
    start, data = (before / name).stat().st_size, (tmp_path / "s" / name).read_bytes()
    database.close()
    assert len(data) > start + 8_000
    for end in (start, start + 10, start + 4_000, len(data) - 1):
        torn = tmp_path / f"torn{end}"
        shutil.copytree(before, torn)
        (torn / name).write_bytes(data[:end])
        (torn / f"{store.FILE}-shm").unlink()
        assert content(stored(torn, "m")[0]) == expected


def test_a_later_version_and_other_files_are_rejected_untouched(tmp_path: Path) -> None:
    filled(tmp_path / "s")
    path = tmp_path / "s" / store.FILE
    data = bytearray(path.read_bytes())
    data[60:64] = (store.VERSION + 1).to_bytes(4, "big")
    path.write_bytes(data)
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    with pytest.raises(StateError, match="made by a later version of varifold"):
        Database(tmp_path / "s")
    for other in (b"", b"text", b"SQLite format 3\0" + bytes(200)):
        path.write_bytes(other)
        with pytest.raises(StateError, match="is no store of varifold"):
            Database(tmp_path / "s")
    path.write_bytes(data)
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


def test_a_full_disk_is_a_disk_error_and_writes_nothing(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    state = ModelState("m", learners.make("arow", {}), Limits())
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    pages = database._db.execute("PRAGMA page_count").fetchone()[0]
    database._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(DiskError, match=r"cannot be written \(database or disk is full\).*accepts no more changes"):
        learn(database, state, 200)
    written = database.models()[0].seq
    assert 0 < written < state.seq
    database.close()
    assert stored(tmp_path, "m")[0].seq == written


def test_a_transaction_that_fails_is_not_counted(tmp_path: Path) -> None:
    """A count ahead of the database would be taken for a damaged log."""
    state = filled(tmp_path / "s")
    database = Database(tmp_path / "s")

    def deny(action: int, what: str | None, *_: Any) -> int:
        return sqlite3.SQLITE_DENY if (action, what) == (sqlite3.SQLITE_TRANSACTION, "COMMIT") else sqlite3.SQLITE_OK

    database._db.set_authorizer(deny)
    with pytest.raises(DiskError, match="not authorized"):
        database.commit([], [{"number": 1}])
    database.close()
    assert content(stored(tmp_path / "s", "m")[0]) == content(state)


def test_a_store_that_cannot_be_made_is_a_disk_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(store, "publish", fail)
    with pytest.raises(DiskError, match="Read-only file system"):
        Database.open(tmp_path)


def test_a_backup_is_a_whole_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = filled(tmp_path / "s")
    backup = tmp_path / "backup.db"
    assert main(["backup", str(tmp_path / "s"), str(backup)]) == 0
    assert "1 model" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "s"), str(backup)]) == 2
    assert "exists; give another name, or --force" in capsys.readouterr().err
    assert main(["backup", "--force", str(tmp_path / "s"), str(backup)]) == 0
    assert main(["restore", str(backup), str(tmp_path / "new")]) == 0
    found, _ = stored(tmp_path / "new", "m")
    assert content(found) == content(state)
    assert main(["restore", str(backup), str(tmp_path / "new")]) == 1
    assert "exists; give a new folder" in capsys.readouterr().err
    assert main(["backup", "--force", str(tmp_path / "nothing"), str(backup)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert backup.stat().st_mode & 0o777 == (tmp_path / "s" / "state.db").stat().st_mode & 0o777
    (tmp_path / "s" / "state.db").chmod(0o600)
    assert main(["backup", "--force", str(tmp_path / "s"), str(backup)]) == 0
    assert main(["restore", str(backup), str(tmp_path / "private")]) == 0
    assert {path.stat().st_mode & 0o777 for path in (backup, tmp_path / "private" / "state.db")} == {0o600}
    backup.write_bytes(backup.read_bytes()[:-5_000])
    assert main(["restore", str(backup), str(tmp_path / "other")]) == 1
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_backup_made_while_changes_are_written_is_one_state(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "s")
    state = ModelState("m", learners.make("arow", {}), Limits())
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    for number in range(3):
        learn(database, state, 25)
        store.backup(tmp_path / "s", tmp_path / f"{number}.db")
        learn(database, state, 10)
        store.restore(tmp_path / f"{number}.db", tmp_path / f"r{number}")
        found, _ = stored(tmp_path / f"r{number}", "m")
        assert found.seq == 35 * number + 25
    database.close()


@pytest.mark.parametrize(
    ("part", "change", "reason"),
    [
        ("devices", lambda stored: [row[:-1] for row in stored], "ValueError"),
        ("devices", lambda stored: [[*row, 0] for row in stored], "ValueError"),
        ("devices", lambda stored: 5, "TypeError"),
        ("monitor", lambda stored: {}, "KeyError"),
        ("input", lambda stored: {"colour": "red"}, "no field 'colour'"),
    ],
)
def test_a_state_of_another_version_is_reported_as_such(
    part: str, change: Any, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was released, so the number of the format stays; a row of another length must still be reported."""
    database = Database.open(tmp_path)
    for name, changed in (("plain", False), ("pumps", True)):
        state = ModelState(name, PerKey(AROW(), key="k"), Limits())
        for _ in range(20):
            state.apply({"x": {"a": 1.0, "k": "p1"}, "y": "up"}, b"")
        state.take_unwritten()
        head, *parts = state.parts()
        facts = orjson.loads(head)
        facts[part] = change(facts[part]) if changed else facts[part]
        state.id = database.add_model(name, state.incarnation, snapshot.split([orjson.dumps(facts), *parts])).id
    database.close(clean=True)
    assert main(["serve", "--check", str(tmp_path)]) == 1
    plain, pumps = capsys.readouterr().out.splitlines()
    assert plain.startswith("plain: 0 changes")
    assert pumps.startswith(
        "pumps: cannot be recovered: what is stored of the model 'pumps' was written by another ver"
    )
    assert reason in pumps
    assert pumps.endswith("Read it with the version that wrote it")


def test_a_folder_is_checked_without_serving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "s"
    filled(folder)
    assert main(["serve", "--check", str(folder)]) == 0
    assert "m: 40 changes after the snapshot at 0" in capsys.readouterr().out
    with sqlite3.connect(folder / store.FILE) as db:
        db.execute("UPDATE changes SET data = CAST(data || ' ' AS BLOB) WHERE first = 3")
    db.close()
    assert main(["serve", "--check", str(folder)]) == 1
    assert "change 3 of the model 'm'" in capsys.readouterr().out
    assert main(["serve", "--check", str(tmp_path / "nothing")]) == 1
    assert "does not exist" in capsys.readouterr().err


def changed(folder: Path, statement: str) -> None:
    """Run a statement on a store, as another program could: its pages and its count stay sound."""
    db = sqlite3.connect(folder / store.FILE)
    assert db.execute(statement).rowcount > 0
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM snapshots WHERE part = 0", "a snapshot"),
        ("DELETE FROM changes WHERE first = (SELECT max(first) FROM changes)", "change"),
        ("DELETE FROM changes WHERE first = (SELECT min(first) FROM changes)", "change"),
    ],
)
def test_rows_that_are_missing_are_reported(tmp_path: Path, statement: str, what: str) -> None:
    filled(tmp_path / "s")
    changed(tmp_path / "s", statement)
    with pytest.raises(StateError, match=what):
        stored(tmp_path / "s", "m")


def test_a_removed_model_leaves_no_rows_and_its_number_is_not_used_again(tmp_path: Path) -> None:
    filled(tmp_path / "s")
    database = Database(tmp_path / "s")
    (row,) = database.models()
    database.commit([store.Written(row, [], [], [], [], [], False, [("readings", 0, 1, 1)])])
    database.set_aside(row.id, [store.SetAside(1, store.ROWS, b"{}", "no memory")])
    database.remove_model(row.id)
    assert database.add_model("m", "abc", [b"{}"]).id != row.id  # its changes are not removed yet
    while database.prune():
        pass
    for table in ("snapshots", "changes", "waiting", "ids", "offsets", "set_aside"):
        query = f"SELECT count(*) FROM {table} WHERE model = ?"
        assert database._db.execute(query, (row.id,)).fetchone() == (0,), table
    database.close()


def test_the_latest_events_are_stored(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    for start in (1, 401, 801):
        database.commit([], [{"number": n} for n in range(start, start + 400)])
    assert [event["number"] for event in database.events()] == list(range(701, 1_201))
    database.close()


def test_a_change_that_a_snapshot_holds_in_part_is_not_pruned(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "s")
    row = database.add_model("m", "abc", [b"{}", b"learner"])
    change = store.Change(1, store.ROWS, [b"one", b"two", b"three"])
    written = store.Written(row._replace(seq=3), [change], [], [], [], [], False)
    database.commit([written])
    database.add_part(row.id, 2, 0, b"{}")
    database.finish_snapshot(row.id, 2)
    while database.prune():
        pass
    (found,) = database.models()
    assert [(change.first, change.rows) for change in database.changes(found)] == [(3, [b"three"])]
    database.close()


def test_a_store_that_was_not_closed_is_restored_with_its_log(tmp_path: Path) -> None:
    state = filled(tmp_path / "s")
    assert (tmp_path / "s" / "state.db-wal").stat().st_size > 0
    assert main(["restore", str(tmp_path / "s" / "state.db"), str(tmp_path / "new")]) == 0
    found, _ = stored(tmp_path / "new", "m")
    assert content(found) == content(state)


def test_no_backup_replaces_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "s")
    live = tmp_path / "s" / "state.db"
    before = live.read_bytes()
    assert main(["backup", "--force", str(tmp_path / "s"), str(live)]) == 1
    assert "is the store of a folder" in capsys.readouterr().err
    assert live.read_bytes() == before
    assert main(["backup", str(tmp_path / "s"), str(tmp_path / "s" / "backup.db")]) == 0


def test_copies_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "s")
    assert main(["backup", str(tmp_path / "s"), str(tmp_path / "nowhere" / "b.db")]) == 1
    assert "b.db cannot be written: No such file or directory" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "nothing.db"), str(tmp_path / "new")]) == 1
    assert f"there is no file {tmp_path / 'nothing.db'}" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "s"), str(tmp_path / "b.db")]) == 0
    code = "import sys; from varifold.cli import main; sys.exit(main(sys.argv[1:]))"
    limited = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "-", sys.executable, "-c", code]
    for command in (
        ["backup", str(tmp_path / "s"), str(tmp_path / "c.db")],
        ["restore", str(tmp_path / "b.db"), str(tmp_path / "r")],
    ):
        done = subprocess.run([*limited, *command], capture_output=True, text=True)
        assert done.returncode == 1
        assert f"cannot be copied to {tmp_path}" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.db", "r", "s"]
    assert list((tmp_path / "r").iterdir()) == []
