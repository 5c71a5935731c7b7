"""Store: one SQLite file per folder, with every model, its changes since its last snapshot, and the events.

SQLite makes transactions atomic (write-ahead log, ``synchronous=FULL``). This module checks what SQLite does not. Every
row has a checksum, because SQLite has none for the content of a row. The number of transactions is also kept in a small
file next to the database, because SQLite silently drops the end of a write-ahead log that is damaged or missing. That
file is written after each transaction and never synced: after a power failure it may be behind the database, but it is
never ahead of it.

The tables (version 1):

- ``store``      one row: number of transactions, whether the last stop was clean, the library's version
- ``models``     one row per model: name, sequence number, counters of the waiting instances, latest snapshot
- ``snapshots``  learners as encoded by `to_bytes`, in parts; part 0 is JSON with the monitor's counts
- ``changes``    what was learned or kept since: rows of JSON, many per blob; or a model file that replaced the learner,
                 or input rules that replaced the others
- ``waiting``    instances that wait for their label, and what was decided about requesting it
- ``ids``        ids chosen by clients, by key
- ``offsets``    how far the partitions of Kafka topics are learned, and predictions sent
- ``set_aside``  changes that could not be replayed at recovery, with the reason
- ``events``     the latest events
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import varifold
from varifold.base.atomic import publish
from varifold.base.json_text import read_json, write_json
from varifold.serve.core.errors import DiskError, StateError

FILE = "state.db"
VERSION = 1
ROWS, RESTORE, RULES = 1, 2, 3
"""Kinds of change: lines of JSON, a model file, or other input rules as JSON."""
PART = 256 << 10
"""Bytes per part of a snapshot: small enough to keep transactions short."""
_APPLICATION = 0x56617266  # "Varf", in the header of the file
_COUNT = "state.count"
_MAGIC = b"SQLite format 3\0"
_NUMBER = struct.Struct("<Q")
_PRUNED = 500
_EVENTS = 500

_SCHEMA = """
CREATE TABLE store (one INTEGER PRIMARY KEY CHECK (one = 1), commits INTEGER, clean INTEGER, library TEXT);
CREATE TABLE models (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, incarnation TEXT, seq INTEGER,
    time INTEGER, learned INTEGER, last INTEGER, expired_to INTEGER, expired INTEGER, snapshot INTEGER, sum INTEGER);
CREATE TABLE snapshots (model INTEGER, seq INTEGER, part INTEGER, data BLOB, sum INTEGER,
    PRIMARY KEY (model, seq, part));
CREATE TABLE changes (id INTEGER PRIMARY KEY, model INTEGER, first INTEGER, rows INTEGER, time INTEGER, kind INTEGER,
    data BLOB, sum INTEGER);
CREATE INDEX changes_of_model ON changes (model, first);
CREATE TABLE waiting (model INTEGER, number INTEGER, time INTEGER, x TEXT, predicted TEXT, asked TEXT, sum INTEGER,
    PRIMARY KEY (model, number)) WITHOUT ROWID;
CREATE TABLE ids (model INTEGER, key TEXT, id TEXT, seq INTEGER, number INTEGER, sum INTEGER,
    PRIMARY KEY (model, key, id)) WITHOUT ROWID;
CREATE TABLE offsets (model INTEGER, topic TEXT, part INTEGER, learned INTEGER, sent INTEGER, sum INTEGER,
    PRIMARY KEY (model, topic, part)) WITHOUT ROWID;
CREATE TABLE set_aside (model INTEGER, seq INTEGER, kind INTEGER, data BLOB, reason TEXT, PRIMARY KEY (model, seq));
CREATE TABLE events (number INTEGER PRIMARY KEY, event TEXT);
INSERT INTO store VALUES (1, 0, 1, '');
"""


class ModelRow(NamedTuple):
    """A model's row in the database, as of its last transaction."""

    id: int
    name: str
    incarnation: str
    seq: int
    time: int
    learned: int
    last: int
    expired_to: int
    expired: int
    snapshot: int


class Change(NamedTuple):
    """Changes of a model, all of one kind. Their sequence numbers start at `first`."""

    first: int
    kind: int
    rows: list[bytes]


class Written(NamedTuple):
    """Changes of one model in a transaction."""

    model: ModelRow
    changes: list[Change]
    kept: list[tuple[int, int, str, str, str]]
    """Instances that start to wait: number, time, and as JSON the instance, the prediction, the policy's decision."""
    labelled: list[int]
    """Numbers of the instances that received their label."""
    ids: list[tuple[str, str, int, int]]
    """New ids: key, id, sequence number, number of the waiting instance or 0."""
    forgotten: list[tuple[str, str]]
    """Ids that were forgotten: key, id."""
    expired: bool
    """Whether instances up to `expired_to` have expired."""
    offsets: Sequence[tuple[str, int, int, int]] = ()
    """Offsets that advanced: topic, partition, first offset that is not learned, first whose prediction is not sent."""


class SetAside(NamedTuple):
    """A change that could not be replayed."""

    seq: int
    kind: int
    data: bytes
    reason: str


class Database:
    """Open database of a folder, for one thread at a time. After a `DiskError` nothing more can be written."""

    def __init__(self, folder: Path, *, sync: bool = True, read_only: bool = False) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._count_file = -1
        check_header(self.path)
        with _reading(self.path):
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._db.execute("PRAGMA trusted_schema = OFF")
                self._db.execute("PRAGMA cell_size_check = ON")
                self._db.execute("PRAGMA temp_store = MEMORY")
                if not read_only:
                    self._db.execute("PRAGMA journal_mode = WAL")
                    self._db.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
                self._check_pages()
                self.commits, clean = self._db.execute("SELECT commits, clean FROM store").fetchone()
                self.clean = bool(clean)
                self._check_count()
            except BaseException:
                self._db.close()
                raise
        if not read_only:
            with _writing(), self._transaction():
                self._db.execute("UPDATE store SET clean = 0, library = ?", (varifold.__version__,))

    @classmethod
    def open(cls, folder: Path, *, sync: bool = True) -> Database:
        """Open the database of a folder; create it if there is none."""
        make_folder(folder)
        if not (folder / FILE).exists():
            create(folder / FILE)
        return cls(folder, sync=sync)

    def _check_pages(self) -> None:
        problems = [row[0] for row in self._db.execute("PRAGMA quick_check(3)")]
        if problems != ["ok"]:
            raise StateError(f"{self.path} is damaged: {'; '.join(problems)}. Restore it from a backup")
        with contextlib.closing(sqlite3.connect(":memory:")) as expected:
            expected.executescript(_SCHEMA)
            if _tables(self._db) != _tables(expected):
                raise StateError(f"{self.path} is damaged: its tables are not those of a store. Restore a backup")

    def _check_count(self) -> None:
        path = self.path.with_name(_COUNT)
        data = path.read_bytes() if path.exists() else b""
        if len(data) >= _NUMBER.size and _NUMBER.unpack_from(data)[0] > self.commits:
            raise StateError(
                f"{self.path} ends at transaction {self.commits:,}, but {_NUMBER.unpack_from(data)[0]:,} were "
                f"acknowledged: its write-ahead log ({FILE}-wal) is damaged or missing. Restore a backup, or remove "
                f"{path.name} to go on without the missing changes"
            )

    @property
    def size(self) -> int:
        """Size of the database and its write-ahead log in bytes."""
        files = (self.path, self.path.with_name(f"{FILE}-wal"))
        return sum(path.stat().st_size for path in files if path.exists())

    # ------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run statements as one transaction and count it; it is on disk when this returns."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.commits += 1
            self._db.execute("UPDATE store SET commits = ?", (self.commits,))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._count()

    def _count(self) -> None:
        if self._count_file < 0:
            self._count_file = os.open(self.path.with_name(_COUNT), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.pwrite(self._count_file, _NUMBER.pack(self.commits), 0)

    def commit(self, written: Sequence[Written], events: Sequence[dict[str, Any]] = ()) -> None:
        """Write the changes of models, and events, as one transaction."""
        with _writing(), self._transaction():
            for one in written:
                self._write(one)
            if events:
                self._write_events(events)

    def _write(self, one: Written) -> None:
        model, time = one.model.id, one.model.time
        for change in one.changes:
            data = b"\n".join(change.rows)
            self._db.execute(
                "INSERT INTO changes (model, first, rows, time, kind, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (model, change.first, len(change.rows), time, change.kind, data, zlib.crc32(data, change.first)),
            )
        if one.kept:
            self._db.executemany(
                "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?)", ((model, *row, _sum(row)) for row in one.kept)
            )
        if one.labelled:
            self._db.executemany(
                "DELETE FROM waiting WHERE model = ? AND number = ?", ((model, number) for number in one.labelled)
            )
        if one.ids:
            self._db.executemany(
                "INSERT OR REPLACE INTO ids VALUES (?, ?, ?, ?, ?, ?)", ((model, *row, _sum(row)) for row in one.ids)
            )
        if one.forgotten:
            self._db.executemany(
                "DELETE FROM ids WHERE model = ? AND key = ? AND id = ?", ((model, *row) for row in one.forgotten)
            )
        if one.offsets:
            self._db.executemany(
                "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?, ?, ?)",
                ((model, *row, _sum(row)) for row in one.offsets),
            )
        if one.expired:
            self._db.execute("DELETE FROM waiting WHERE model = ? AND number <= ?", (model, one.model.expired_to))
        self._db.execute(
            "UPDATE models SET seq = ?, time = ?, learned = ?, last = ?, expired_to = ?, expired = ?, sum = ? "
            "WHERE id = ?",
            (*one.model[3:9], _sum(one.model[1:9]), model),
        )

    def _write_events(self, events: Sequence[dict[str, Any]]) -> None:
        rows = [(event["number"], write_json(event).decode()) for event in events]
        self._db.executemany("INSERT OR REPLACE INTO events VALUES (?, ?)", rows)
        self._db.execute("DELETE FROM events WHERE number <= ?", (rows[-1][0] - _EVENTS,))

    # ------------------------------------------------------------------ models and their snapshots

    def add_model(self, name: str, incarnation: str, snapshot: Iterable[bytes]) -> ModelRow:
        """Add a new model with its first snapshot, in one transaction."""
        row = ModelRow(0, name, incarnation, 0, 0, 0, 0, 0, 0, 0)
        with _writing(), self._transaction():
            cursor = self._db.execute(
                "INSERT INTO models (name, incarnation, seq, time, learned, last, expired_to, expired, snapshot, sum) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row[1:], _sum(row[1:9])),
            )
            row = row._replace(id=int(cursor.lastrowid or 0))
            for part, data in enumerate(snapshot):
                self._insert_part(row.id, 0, part, data)
        return row

    def remove_model(self, model: int) -> None:
        """Remove a model; its changes and snapshots are removed by `prune`, a few at a time."""
        with _writing(), self._transaction():
            self._db.execute("DELETE FROM models WHERE id = ?", (model,))
            for table in ("waiting", "ids", "offsets", "set_aside"):
                self._db.execute(f"DELETE FROM {table} WHERE model = ?", (model,))

    def add_part(self, model: int, seq: int, part: int, data: bytes) -> None:
        """Write a part of a snapshot, which becomes valid when `finish_snapshot` is called."""
        with _writing(), self._transaction():
            self._insert_part(model, seq, part, data)

    def _insert_part(self, model: int, seq: int, part: int, data: bytes) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", (model, seq, part, data, zlib.crc32(data, part))
        )

    def finish_snapshot(self, model: int, seq: int) -> None:
        """Make this snapshot the one that recovery starts from."""
        with _writing(), self._transaction():
            self._db.execute("UPDATE models SET snapshot = ? WHERE id = ?", (seq, model))

    def prune(self, *, unfinished: bool = False) -> bool:
        """Remove some of the rows that are no longer needed; return False if there were none.

        These are changes and snapshots before a model's latest snapshot, and those of removed models; with
        `unfinished`, when a server starts, also snapshots that were never finished.
        """
        other = "<>" if unfinished else "<"
        old = {"changes": "c.first + c.rows <= m.snapshot + 1", "snapshots": f"c.seq {other} m.snapshot"}
        removed = 0
        with _writing(), self._transaction():
            for table, condition in old.items():
                removed += self._db.execute(
                    f"DELETE FROM {table} WHERE rowid IN (SELECT c.rowid FROM {table} c LEFT JOIN models m "
                    f"ON m.id = c.model WHERE m.id IS NULL OR {condition} LIMIT {_PRUNED})"
                ).rowcount
        return removed > 0

    def set_aside(self, model: int, changes: Iterable[SetAside]) -> None:
        """Store changes that could not be replayed, with their reasons."""
        with _writing(), self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO set_aside VALUES (?, ?, ?, ?, ?)", ((model, *c) for c in changes)
            )

    # ------------------------------------------------------------------ reading

    def models(self) -> list[ModelRow]:
        """Return every model, sorted by name."""
        with _reading(self.path):
            names = ", ".join(ModelRow._fields)
            rows = self._db.execute(f"SELECT {names}, sum FROM models ORDER BY name").fetchall()
        for row in rows:
            self._check(row[-1] == _sum(row[1:9]), f"the row of the model {row[1]!r}")
        return [ModelRow(*row[:-1]) for row in rows]

    def snapshot(self, model: ModelRow) -> list[bytes]:
        """Return the parts of a model's latest snapshot."""
        with _reading(self.path):
            rows = self._db.execute(
                "SELECT part, data, sum FROM snapshots WHERE model = ? AND seq = ? ORDER BY part",
                (model.id, model.snapshot),
            ).fetchall()
        for part, data, total in rows:
            self._check(total == zlib.crc32(data, part), f"part {part} of the snapshot of {model.name!r}")
        self._check(bool(rows) and [row[0] for row in rows] == list(range(len(rows))), f"a snapshot of {model.name!r}")
        return [row[1] for row in rows]

    def changes(self, model: ModelRow) -> Iterator[Change]:
        """Return the changes after a model's snapshot, in order and without a gap."""
        with _reading(self.path):
            cursor = self._db.execute(
                "SELECT first, rows, kind, data, sum FROM changes WHERE model = ? AND first + rows > ? ORDER BY first",
                (model.id, model.snapshot + 1),
            )
            following = model.snapshot + 1
            for first, rows, kind, data, total in cursor:
                self._check(total == zlib.crc32(data, first), f"change {first:,} of the model {model.name!r}")
                lines = [data] if kind == RESTORE else data.split(b"\n")
                self._check(first <= following and len(lines) == rows, f"change {following:,} of {model.name!r}")
                yield Change(following, kind, lines[following - first :])
                following = first + rows
        self._check(following == model.seq + 1, f"change {following:,} of the model {model.name!r}")

    def waiting(self, model: ModelRow) -> list[tuple[int, int, str, str, str]]:
        """Return the waiting instances, oldest first: number, time, and as JSON instance, prediction and decision."""
        columns = "number, time, x, predicted, asked"
        return self._rows(f"SELECT {columns}, sum FROM waiting WHERE model = ? ORDER BY number", model)

    def ids(self, model: ModelRow) -> list[tuple[str, str, int, int]]:
        """Return the ids chosen by clients: key, id, sequence number, number of the waiting instance; oldest first."""
        return self._rows("SELECT key, id, seq, number, sum FROM ids WHERE model = ? ORDER BY seq", model)

    def offsets(self, model: ModelRow) -> list[tuple[str, int, int, int]]:
        """Return the offsets of Kafka: topic, partition, first that is not learned, first that is not sent."""
        return self._rows("SELECT topic, part, learned, sent, sum FROM offsets WHERE model = ?", model)

    def _rows(self, query: str, model: ModelRow) -> list[Any]:
        with _reading(self.path):
            rows = self._db.execute(query, (model.id,)).fetchall()
        for row in rows:
            self._check(row[-1] == _sum(row[:-1]), f"a waiting instance, id or offset of the model {model.name!r}")
        return [row[:-1] for row in rows]

    def events(self) -> list[dict[str, Any]]:
        """Return the stored events, oldest first."""
        with _reading(self.path):
            return [read_json(row[0]) for row in self._db.execute("SELECT event FROM events ORDER BY number")]

    def _check(self, sound: bool, what: str) -> None:
        if not sound:
            raise StateError(f"{self.path} is damaged: {what} is missing or does not match its checksum")

    # ------------------------------------------------------------------ closing

    def close(self, *, clean: bool = False) -> None:
        """Close the file; after a clean stop the write-ahead log is empty."""
        try:
            if clean:
                with _writing(), self._transaction():
                    self._db.execute("UPDATE store SET clean = 1")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            with contextlib.suppress(sqlite3.Error):  # closing a file that can no longer be written
                self._db.close()
            if self._count_file >= 0:
                os.close(self._count_file)
                self._count_file = -1


# ---------------------------------------------------------------------- the file as a whole


def create(path: Path) -> None:
    """Create an empty database atomically."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with _writing():
        db = sqlite3.connect(part, isolation_level=None)
        try:
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
        finally:
            db.close()
        publish(part, path)


def make_folder(folder: Path) -> None:
    """Make a folder, unless it exists; reject a path at which there is a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StateError(f"{folder} is no folder: it, or a part of its path, is a file") from error


def check_header(path: Path) -> None:
    """Reject a file that is not a store, or one of a later version, before SQLite touches it."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except FileNotFoundError as error:
        raise StateError(f"{path} does not exist: this is no folder of varifold serve or follow --state") from error
    except NotADirectoryError as error:
        raise StateError(f"{path.parent} is a file; name the folder of varifold serve or follow --state") from error
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error
    version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
    if head[: len(_MAGIC)] != _MAGIC or application != _APPLICATION:
        raise StateError(f"{path} is no store of varifold, or its first bytes are damaged; restore it from a backup")
    if version > VERSION:
        raise StateError(
            f"{path} was made by a later version of varifold (store version {version}; this is varifold "
            f"{varifold.__version__}, which reads {VERSION}). It is left as it is: install the later version"
        )


def backup(folder: Path, target: Path) -> int:
    """Copy the store of a folder to a file, also while a server writes to it; return the number of models."""
    if _is_used(target):
        raise StateError(f"{target} is the store of a folder; give the name of another file for the backup")
    return _copy(folder / FILE, target)


def restore(source: Path, folder: Path) -> int:
    """Restore a folder from a backup; return the number of models. A folder that already has a store is not changed."""
    target = folder / FILE
    if target.exists():
        raise StateError(f"{target} exists; give a new folder, or move that file away")
    if not source.exists():
        raise StateError(f"there is no file {source}")
    check_header(source)
    check_file(source)
    make_folder(folder)
    for name in (_COUNT, f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    return _copy(source, target)


def _is_used(path: Path) -> bool:
    """Return whether a file is the store of a folder: its write-ahead log or count is next to it."""
    return path.with_name(f"{path.name}-wal").exists() or (path.name == FILE and path.with_name(_COUNT).exists())


def _copy(source: Path, target: Path) -> int:
    """Copy a store, with its write-ahead log if it has one, and check the copy; return the number of models."""
    check_header(source)
    part = target.with_name(f"{target.name}.part")
    try:
        with _writing_to(target):
            part.write_bytes(b"")
            part.chmod(source.stat().st_mode & 0o777)  # a copy is not for more people than its source
        with (
            _reading(source),
            contextlib.closing(_read_only(source)) as original,
            contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy,
        ):
            try:
                original.backup(copy)  # all pages in one step: one state, whatever is written meanwhile
                copy.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.OperationalError as error:  # such as a full disk
                raise StateError(f"{source} cannot be copied to {target}: {error}") from error
        models = check_file(part)
        with _writing_to(target):
            with open(part, "rb+") as file:
                os.fsync(file.fileno())
            publish(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return models


def check_file(path: Path) -> int:
    """Reject a database whose pages are damaged; return the number of models."""
    with _reading(path), contextlib.closing(_read_only(path)) as db:
        problems = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
        if problems != ["ok"]:
            raise StateError(f"{path} is damaged: {'; '.join(problems)}")
        return int(db.execute("SELECT count(*) FROM models").fetchone()[0])


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _tables(db: sqlite3.Connection) -> list[Any]:
    """Return the statements that made the tables; SQLite does not check them for damage."""
    return db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


def _sum(values: Sequence[Any]) -> int:
    """Return a checksum of a row's values."""
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogatepass"))


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DiskError.of(error) from error


@contextlib.contextmanager
def _writing_to(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, TypeError, ValueError) as error:  # the last two: a value has another type
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            raise StateError(f"{path} cannot be written by this user; give the file and its folder to it") from error
        raise StateError(f"{path} is damaged or cannot be read ({error}). Restore it from a backup") from error
