"""A stream of JSON lines, answered line by line and learned as labels come, with or without a durable state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from varifold.base.json_text import write_json
from varifold.base.learner import is_regressor
from varifold.errors import DataError, ParameterError, VarifoldError
from varifold.serve.core import bodies
from varifold.serve.core.errors import ConflictError, RefusedError
from varifold.serve.core.journal import ROWS, Record
from varifold.serve.core.models import check_name, lock_folder
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store
from varifold.serve.lines import Fields, parse
from varifold.streams.readers.targets import FIRST_ROWS, look_measured, many_labels_remedy, too_many_labels

_CHUNK = 1 << 20
_MOST_LINES = 1_000
_MOST_FIELDS = 1_000


@dataclass
class _Line:
    """A line on its way: its row, what its answer repeats of it, and why it is refused."""

    number: int
    row: dict[str, Any] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


class Follower:
    """Turns lines into rows of the durable core: an instance without a label is answered, one with it also learned.

    With an id field, an unlabelled instance waits; a later line with its id and the label teaches it. `regressor` makes
    the learner to use instead if the first labels turn out to be numbers to predict; None: the learner stays.
    """

    def __init__(
        self, state: ModelState, store: Store | None, fields: Fields, regressor: Callable[[], Any] | None = None
    ) -> None:
        self.state = state
        self.store = store
        self.how = fields
        self._regressor = regressor
        self._first_labels: list[Any] | None = None if regressor is None else []
        self.lines = 0
        self._at = 0  # lines read, blank ones included
        self.refused = 0
        self.labelled = 0
        self.fields: set[str] = set()
        """Fields of the first lines, to find what a misspelled target may have meant."""
        self._whole = True  # whether everything in the journal is applied

    @classmethod
    def open(
        cls,
        folder: Path | None,
        name: str,
        learner: Any,
        fields: Fields,
        limits: Limits,
        regressor: Callable[[], Any] | None = None,
    ) -> Follower:
        """Go on with the state in a folder, or start with the learner; without a folder nothing is kept."""
        try:
            check_name(name)
        except RefusedError as error:
            raise ParameterError(f"--name: {error}") from error
        if folder is None:
            return cls(ModelState(name, learner, limits), None, fields, regressor)
        lock_folder(folder)
        place = folder / "models" / name
        if place.is_dir():
            store = Store.open(place, limits, Policy())
            held = store.state.learner
            _check_same(folder, held, learner, fields.target)
            if held.steps or is_regressor(held):
                regressor = None
        else:
            learner.reading = {**learner.reading, **fields.noted()}
            store = Store.create(place, ModelState(name, learner, limits), Policy())
        return cls(store.state, store, fields, regressor)

    def answer(self, lines: list[bytes]) -> list[bytes]:
        """One line of JSON per line; with a state on disk, what they change is there before they are answered."""
        read = []
        for text in lines:
            self._at += 1
            if text.strip():
                read.append(self._read(text))
        labels = [line.row["y"] for line in read if "y" in line.row]
        self._choose(labels)
        self._check_many(labels)
        for line in read:
            self._check(line)
        done = iter(self._applied([line.row for line in read if line.error is None]))
        found = [self._answered(line, next(done) if line.error is None else {}) for line in read]
        self.refused += sum("error" in answer for answer in found)
        return [write_json(answer) for answer in found]

    def _read(self, text: bytes) -> _Line:
        """A line as a row, or why it is none."""
        self.lines += 1
        line = _Line(self._at)
        try:
            found = parse(text)
            if len(self.fields) < _MOST_FIELDS:
                self.fields.update(found)
            line.names = self.how.names(found)
            line.row = self.how.row(found)
            self.labelled += "y" in line.row
        except VarifoldError as error:
            line.error = str(error)
        return line

    def _check(self, line: _Line) -> None:
        """Note why the learner refuses a row that changes something."""
        try:
            if line.error is None and bodies.changes(line.row):
                self.state.check(line.row)
        except VarifoldError as error:
            line.error = str(error)

    def _answered(self, line: _Line, found: dict[str, Any]) -> dict[str, Any]:
        """The answer to a line: what became of its row, with its id and key, or why it is refused."""
        if "x" not in line.row and found.get("status") == ConflictError.status:
            found = {"seq": self.state.seq_of(str(line.row["id"])), "duplicate": True}
        error = line.error if line.error is not None else found.get("error")
        if error is not None:
            return {"error": error, "line": line.number, **line.names}
        return {**found, **line.names}

    def _choose(self, labels: list[Any]) -> None:
        """With the first labels, before anything is learned: whether they are classes, or numbers for a regressor."""
        if self._regressor is None or not labels:
            return
        make, self._regressor = self._regressor, None
        if look_measured(labels):
            learner = make()
            learner.reading = {**self.state.learner.reading, "target_type": "number"}
            self.state.learner = learner
            if self.store is not None:
                self.store.snapshot_now()

    def _check_many(self, labels: list[Any]) -> None:
        """Raise DataError where most of the first labels are different, before memory is taken for each."""
        if self._first_labels is None or is_regressor(self.state.learner):
            return
        self._first_labels += labels
        described = too_many_labels(self._first_labels)
        if described is not None:
            raise DataError(f"the target has {described}; {many_labels_remedy(self._first_labels)}")
        if len(self._first_labels) >= FIRST_ROWS:
            self._first_labels = None

    def _applied(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        changed = [write_json(row) for row in rows if bodies.changes(row)]
        if self.store is None:
            found: list[dict[str, Any]] = self.state.apply(ROWS, rows)
        elif changed:
            record = Record(ROWS, b"\n".join(changed), len(changed))
            self._whole = False
            self.store.journal.write(self.store.frame([record]))
            self.store.committed()
            found = self.store.apply(ROWS, rows, len(record.payload))
            self._whole = True
            if self.store.due:
                self.store.snapshot_now()
        else:
            found = self.state.apply(ROWS, rows)
        return found

    def close(self) -> None:
        """Leave a snapshot, so that the next start has nothing to replay.

        After an error within a group only the journal has all of it: it stays, and is replayed.
        """
        if self.store is not None:
            if self._whole:
                self.store.snapshot_now()
            self.store.close()


def _check_same(folder: Path, held: Any, given: Any, target: str) -> None:
    """Refuse to go on with a state that was made for another target or key; say that another model is not used."""
    before = held.reading.get("target")
    if before is not None and before != target:
        raise ParameterError(
            f"--target {target}: the state in {folder} learned the target {before!r}; give that one, or another --state"
        )
    key, asked = getattr(held, "key", None), getattr(given, "key", None)
    if key != asked:
        was = "has one learner for all lines" if key is None else f"has one learner per {key!r}"
        raise ParameterError(f"--key: the state in {folder} {was}; go on with it so, or give another --state")


def other_method(held: Any, given: Any) -> str | None:
    """The method that a state holds, where it is neither the one asked for nor its regressor."""
    found, asked = (x.model if hasattr(x, "model") else x for x in (held, given))
    found, asked = (x._header()["method"] for x in (found, asked))
    return None if found in (asked, f"{asked}regressor") else str(found)


def groups_of_lines(fd: int) -> Iterator[list[bytes]]:
    """Whole lines as they come, blank ones too: one at once, many together only if they are there."""
    rest = b""
    while data := os.read(fd, _CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        for at in range(0, len(lines), _MOST_LINES):
            yield lines[at : at + _MOST_LINES]
    if rest.strip():
        yield [rest]


def check_fields(target: str, id_field: str | None, key: str | None, time: str | None = None) -> None:
    """Refuse fields that mean two things."""
    named = [name for name in (target, id_field, key, time) if name is not None]
    if len(set(named)) != len(named):
        raise ParameterError("--target, --id, --key and --time must be different fields")
