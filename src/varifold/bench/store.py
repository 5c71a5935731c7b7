"""Store outcomes in one SQLite file: one process writes, and each outcome is committed when it arrives."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, fields
from datetime import UTC, datetime
from typing import Any, Self

from varifold.bench.cell import Cell, Outcome
from varifold.errors import DataError

__all__ = ["ResultStore"]

_VERSION = 2
_KEY = [f.name for f in fields(Cell)]
_VALUES = [f.name for f in fields(Outcome)]
_TYPES = {"float": "REAL", "int": "INTEGER", "int | None": "INTEGER", "bytes": "BLOB", "str": "TEXT", "bool": "INTEGER"}


def _columns(cls: type) -> str:
    return ", ".join(f"{f.name} {_TYPES[str(f.type)]}" for f in fields(cls))


_SCHEMA = f"""
CREATE TABLE environment (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE outcome (
    {_columns(Cell)}, code TEXT NOT NULL, {_columns(Outcome)},
    environment INTEGER NOT NULL REFERENCES environment, finished TEXT NOT NULL,
    PRIMARY KEY ({", ".join(_KEY)}, code)
) WITHOUT ROWID;
CREATE TABLE failure (
    {_columns(Cell)}, code TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY ({", ".join(_KEY)}, code)
) WITHOUT ROWID;
CREATE TABLE study (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
PRAGMA user_version = {_VERSION};
"""


class ResultStore:
    """Keep outcomes by cell and code version.

    Obligations: one process writes, any number read. An outcome is on disk when `put` returns (rollback journal,
    synchronous writes), so an interrupt, a killed process or a full disk cannot lose it.
    """

    def __init__(self, path: str | os.PathLike[str], *, write: bool = True) -> None:
        self.path = os.fspath(path)
        if not write and not os.path.exists(self.path):
            raise DataError(f"there is no store {self.path!r} yet; `varifold bench run TABLE` makes it")
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=60)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.DatabaseError as error:
            raise self._error(error) from error

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.execute("PRAGMA synchronous = FULL")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        elif version != _VERSION:
            raise DataError(
                f"{self.path} is no store of this version (format {version}, here {_VERSION}); pass another --store"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, cell: Cell, outcome: Outcome, environment: dict[str, Any], code: str | None = None) -> None:
        """Store an outcome; it replaces a failure of the same cell.

        `code` is the version of the code if the learner's own source counts as well (see `provenance.cell_code`).
        """
        environment_id = self._environment(environment)
        code = environment["code"] if code is None else code
        row = (*astuple(cell), code, *astuple(outcome), environment_id, _now())
        names = ", ".join([*_KEY, "code", *_VALUES, "environment", "finished"])
        marks = ", ".join("?" * len(row))
        self._write(
            [
                (f"INSERT OR REPLACE INTO outcome ({names}) VALUES ({marks})", row),
                (f"DELETE FROM failure WHERE {_WHERE}", (*astuple(cell), code)),
            ]
        )

    def put_failure(self, cell: Cell, reason: str, code: str) -> None:
        """Store the reason why a cell failed."""
        marks = ", ".join("?" * (len(_KEY) + 2))
        self._write([(f"INSERT OR REPLACE INTO failure VALUES ({marks})", (*astuple(cell), code, reason))])

    def put_study(self, name: str, definition: dict[str, Any]) -> None:
        """Store the definition of a user's study, for later reports."""
        text = json.dumps(definition, sort_keys=True)
        self._write([("INSERT OR REPLACE INTO study VALUES (?, ?)", (name, text))])

    def _environment(self, facts: dict[str, Any]) -> int:
        text = json.dumps(facts, sort_keys=True)
        row = self._db.execute("SELECT id FROM environment WHERE facts = ?", (text,)).fetchone()
        if row is None:
            self._write([("INSERT INTO environment (facts) VALUES (?)", (text,))])
            return self._environment(facts)
        return int(row[0])

    def _write(self, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for sql, row in statements:
                self._db.execute(sql, row)
            self._db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._error(error) from error

    def _read(self, query: str) -> list[Any]:
        try:
            return self._db.execute(query).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.DatabaseError) -> DataError:
        if "full" in str(error):
            return DataError(
                f"the disk of {self.path} is full; all outcomes so far are stored: free some space and run the same "
                "command again"
            )
        return DataError(f"{self.path}: {error}; if the file is damaged, pass another --store")

    def outcomes(self, code: str | Callable[[str, str], bool] | None = None) -> dict[Cell, Outcome]:
        """Return the outcomes of a code version, or those for whose model and version a function returns True.

        None selects the latest outcome of each cell, whatever its version.
        """
        query = f"SELECT code, {', '.join(_KEY + _VALUES)} FROM outcome ORDER BY finished"
        outcomes = {}
        for version, *row in self._read(query):
            cell = _cell(tuple(row[: len(_KEY)]))
            if code is None or (code(cell.model, version) if callable(code) else version == code):
                outcomes[cell] = _outcome(tuple(row[len(_KEY) :]))
        return outcomes

    def failures(self) -> dict[Cell, str]:
        """Return the latest reason for failure of each cell."""
        return {_cell(row[:-1]): row[-1] for row in self._read(f"SELECT {', '.join(_KEY)}, reason FROM failure")}

    def studies(self) -> dict[str, dict[str, Any]]:
        """Return the users' studies by name."""
        return {name: json.loads(text) for name, text in self._read("SELECT * FROM study ORDER BY name")}

    def environments(self) -> Iterator[tuple[dict[str, Any], int, str, str]]:
        """Yield the environments of the outcomes: facts, number of outcomes, first and last day."""
        query = """SELECT facts, count(*), min(finished), max(finished) FROM outcome
                   JOIN environment ON environment.id = outcome.environment GROUP BY facts ORDER BY max(finished)"""
        for facts, count, first, last in self._read(query):
            yield json.loads(facts), count, first, last


_WHERE = " AND ".join(f"{name} = ?" for name in [*_KEY, "code"])


def _cell(row: tuple[Any, ...]) -> Cell:
    columns = dict(zip(_KEY, row, strict=True))
    return Cell(**{**columns, "shuffle": bool(columns["shuffle"])})


def _outcome(row: tuple[Any, ...]) -> Outcome:
    # SQLite stores NaN as NULL
    values: dict[str, Any] = {
        f.name: math.nan if value is None and f.type == "float" else value
        for f, value in zip(fields(Outcome), row, strict=True)
    }
    return Outcome(**values)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
