"""Follow a stream of JSON lines: predict each, learn as labels arrive, with or without a stored state."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from varifold.base.json_text import write_json
from varifold.base.label_count import FIRST_ROWS, too_many_labels
from varifold.base.learner import is_regressor, learns_unlabelled
from varifold.errors import DataError, ParameterError, VarifoldError
from varifold.serve.core import snapshot
from varifold.serve.core.database import Database
from varifold.serve.core.errors import ConflictError, RejectedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import check_name, lock_folder
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.lines import names_of, parse, row_of
from varifold.streams.readers.context import MAX_LINE
from varifold.streams.readers.targets import are_measured, many_labels_remedy

_CHUNK = 1 << 20
_SNAPSHOT_EVERY = 100_000
_MOST_LINES = 1_000
_MOST_FIELDS = 1_000


@dataclass
class _Line:
    """A line being processed: its row, the fields that its output repeats, and the reason if it is rejected."""

    number: int
    row: dict[str, Any] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


class Follower:
    """Turns lines into rows of the durable core: every instance is predicted, and learned if it has a label.

    With an id field, an unlabelled instance waits; a later line with its id and the label completes it. Without one,
    it is learned without a label if the learner can. `regressor` makes the learner to use instead if the first labels
    turn out to be regression targets; None keeps the learner.
    """

    def __init__(
        self,
        state: ModelState,
        database: Database | None,
        rules: InputRules,
        regressor: Callable[[], Any] | None = None,
        replayed: int = 0,
    ) -> None:
        self.state = state
        self.database = database
        self.replayed = replayed
        self.rules = rules
        self._regressor = regressor
        self._first_labels: list[Any] | None = None if regressor is None else []
        self.lines = 0
        self._at = 0  # lines read, blank ones included
        self.rejected = 0
        self.first_rejected: dict[str, Any] | None = None
        """Output for the first line that was rejected."""
        self.labelled = 0
        self.fields: set[str] = set()
        """Fields of the first lines, for a suggestion if the target is misspelled."""
        self._complete = True  # whether every group was applied completely

    @classmethod
    def open(
        cls,
        folder: Path | None,
        name: str,
        learner: Any,
        rules: InputRules,
        limits: Limits,
        regressor: Callable[[], Any] | None = None,
    ) -> Follower:
        """Continue with the state in a folder, or start with the learner; without a folder nothing is stored."""
        try:
            check_name(name)
        except RejectedError as error:
            raise ParameterError(f"--name: {error}") from error
        if folder is None:
            return cls(ModelState(name, learner, limits, rules=rules), None, rules, regressor)
        lock_folder(folder)
        database = Database.open(folder)
        try:
            return cls._of_database(database, name, learner, rules, limits, regressor)
        except BaseException:
            database.close()
            raise

    @classmethod
    def _of_database(
        cls,
        database: Database,
        name: str,
        learner: Any,
        rules: InputRules,
        limits: Limits,
        regressor: Callable[[], Any] | None,
    ) -> Follower:
        """Continue with the model of that name in a database, or add it."""
        row = next((row for row in database.models() if row.name == name), None)
        if row is None:
            learner.reading = {**learner.reading, **_noted(rules)}
            state = ModelState(name, learner, limits, rules=rules)
            state.id = database.add_model(name, state.incarnation, snapshot.split(state.parts())).id
            return cls(state, database, rules, regressor)
        state, recovery = ModelState.load(database, row, limits)
        _check_same(database.folder, state.learner, learner, rules.target)
        if rules.ask is not None and rules.ask != state.rules.ask:
            held = "requests no labels" if state.rules.ask is None else f"has the policy {state.rules.ask}"
            raise ParameterError(
                f"--ask: the state in {database.folder} {held}; leave --ask out, or give another --state"
            )
        if recovery.set_aside:
            database.set_aside(row.id, recovery.set_aside)
        if state.learner.steps or is_regressor(state.learner):
            regressor = None
        return cls(state, database, rules, regressor, recovery.replayed)

    def process(self, lines: list[bytes]) -> list[bytes]:
        """Return a line of JSON for each line; with a state, their changes are on disk when this returns."""
        read = []
        for text in lines:
            self._at += 1
            if text.strip():
                read.append(self._read(text))
        labels = [line.row["y"] for line in read if line.row.get("y") is not None]
        self._choose(labels)
        self._check_many(labels)
        results = iter(self._apply([line.row for line in read if line.error is None]))
        output = [self._output(line, next(results) if line.error is None else {}) for line in read]
        rejected = [one for one in output if "error" in one]
        self.rejected += len(rejected)
        if rejected and self.first_rejected is None:
            self.first_rejected = rejected[0]
        return [write_json(one) for one in output]

    def _read(self, text: bytes) -> _Line:
        """Make a row of a line, or record why it is rejected."""
        self.lines += 1
        line = _Line(self._at)
        try:
            if len(text) > MAX_LINE:
                raise DataError(f"the line is longer than {MAX_LINE >> 20} MB; split it into several")
            values = parse(text, self.rules)
            if len(self.fields) < _MOST_FIELDS:
                self.fields.update(values)
            line.names = names_of(values, self.rules)
            line.row = row_of(values, self.rules)
            self.labelled += "y" in line.row
            if line.row.keys() == {"x"} and learns_unlabelled(self.state.learner):
                line.row.update({"y": None, "predict": True})
        except VarifoldError as error:
            line.error = str(error)
        return line

    def _output(self, line: _Line, result: dict[str, Any]) -> dict[str, Any]:
        """Return the output for a line: the result of its row, with its id and key, or why it is rejected."""
        if "x" not in line.row and result.get("status") == ConflictError.status:
            result = {"seq": self.state.seq_of(str(line.row["id"]), line.row.get("key")), "duplicate": True}
        error = line.error if line.error is not None else result.get("error")
        if error is not None:
            return {"error": error, "line": line.number, **line.names}
        return {**result, **line.names}

    def _choose(self, labels: list[Any]) -> None:
        """Decide from the first labels, before anything is learned, whether a regressor is needed."""
        if self._regressor is None or not labels:
            return
        make, self._regressor = self._regressor, None
        if are_measured(list(dict.fromkeys(labels)), len(labels)):
            if self.state.asking is not None:
                raise DataError(
                    "--ask is for classes, and the target is a number; --target-type class makes it a class"
                )
            learner = make()
            learner.reading = {**self.state.learner.reading, "target_type": "number"}
            self.state.learner = learner
            self._snapshot()

    def _check_many(self, labels: list[Any]) -> None:
        """Raise DataError if most of the first labels are different, before memory is allocated for each."""
        if self._first_labels is None or is_regressor(self.state.learner):
            return
        self._first_labels += labels
        described = too_many_labels(self._first_labels)
        if described is not None:
            raise DataError(f"the target has {described}; {many_labels_remedy(self._first_labels, json=True)}")
        if len(self._first_labels) >= FIRST_ROWS:
            self._first_labels = None

    def _apply(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Apply the rows of a group; their changes are on disk when this returns."""
        self._complete = False
        self.state.tick(int(time.time() * 1000))
        results = self.state.apply_rows([(row, write_json(row)) for row in rows])
        if self.database is not None:
            written = self.state.take_unwritten()
            if written is not None:
                self.database.commit([written])
            if self.state.seq - self.state.snapshot >= _SNAPSHOT_EVERY:
                self._snapshot()
        self._complete = True
        return results

    def _snapshot(self) -> None:
        """Store the current state, so that no earlier change is replayed."""
        if self.database is None:
            return
        for number, data in enumerate(snapshot.split(self.state.parts())):
            self.database.add_part(self.state.id, self.state.seq, number, data)
        self.database.finish_snapshot(self.state.id, self.state.seq)
        self.state.snapshot = self.state.seq
        while self.database.prune(unfinished=True):
            pass

    def close(self) -> None:
        """Write a snapshot, so that the next start has nothing to replay.

        An interrupted group has no output, and nothing of it is stored.
        """
        if self.database is None:
            return
        if self._complete and self.state.snapshot < self.state.seq:
            self._snapshot()
        self.database.close(clean=self._complete)


def _check_same(folder: Path, stored: Any, requested: Any, target: str | None) -> None:
    """Reject a state that was made for another target, key or number of keys."""
    before = stored.reading.get("target")
    if before is not None and before != target:
        given = "--detect" if target is None else f"--target {target}"
        raise ParameterError(
            f"{given}: the state in {folder} learned the target {before!r}; use that one, or another --state"
        )
    key = getattr(stored, "key", None)
    if key != getattr(requested, "key", None):
        was = "has one learner for all lines" if key is None else f"has one learner per {key!r}"
        raise ParameterError(f"--key: the state in {folder} {was}; use the same --key, or another --state")
    most = getattr(requested, "max_keys", None)
    if most is not None and most != stored.max_keys:
        was = "keeps all keys" if stored.max_keys is None else f"keeps {stored.max_keys:,} keys"
        raise ParameterError(
            f"--max-keys {most}: the state in {folder} {was}; leave --max-keys out, or give another --state"
        )


def other_method(stored: Any, requested: Any) -> str | None:
    """Return the method in a state, if it is neither the requested one nor its regressor."""
    learners = (x.model if hasattr(x, "model") else x for x in (stored, requested))
    method, wanted = (learner._header()["method"] for learner in learners)
    return None if method in (wanted, f"{wanted}regressor") else str(method)


def _noted(rules: InputRules) -> dict[str, Any]:
    """Return the reading options that a model file records, as `varifold run` does."""
    return {name: value for name, value in rules.to_json().items() if name not in ("key", "flatten", "ask")}


def groups_of_lines(fd: int) -> Iterator[list[bytes]]:
    """Yield groups of complete lines, blank ones included, without waiting for more lines than have arrived.

    Of a line longer than MAX_LINE, only enough is kept to reject it.
    """
    parts: list[bytes] = []  # of the last line, joined once: a long line arrives in many reads
    size = 0
    while data := os.read(fd, _CHUNK):
        first, *lines = data.split(b"\n")
        if size <= MAX_LINE:
            parts.append(first)
            size += len(first)
        if lines:
            complete = [b"".join(parts), *lines[:-1]]
            parts, size = [lines[-1]], len(lines[-1])
            for at in range(0, len(complete), _MOST_LINES):
                yield complete[at : at + _MOST_LINES]
    rest = b"".join(parts)
    if rest.strip():
        yield [rest]
