"""Labels that arrive late: which instance is predicted and learned when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from varifold._engine.block import concatenate
from varifold.base import Block
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.evaluate.metrics import Bools, Floats, Ints

Delay = float | str | Callable[[Mapping[Any, Any], Any], float | None] | None


@dataclass(frozen=True)
class Piece:
    """Consecutive instances of a stream; rows, when there, are what dict learners are given instead of the block's."""

    block: Block
    rows: list[Mapping[Any, Any]] | None = None

    def take(self, rows: Ints) -> Piece:
        """The instances at these positions."""
        return Piece(self.block.take(rows), None if self.rows is None else [self.rows[i] for i in rows.tolist()])

    def cut(self, lo: int, hi: int) -> Piece:
        """The instances from lo up to, not with, hi."""
        return Piece(self.block[lo:hi], None if self.rows is None else self.rows[lo:hi])

    def after(self, earlier: Piece) -> Piece:
        """These instances behind earlier ones of the same stream."""
        rows = None if self.rows is None or earlier.rows is None else [*earlier.rows, *self.rows]
        return Piece(concatenate([earlier.block, self.block]), rows)


@dataclass(frozen=True)
class Plan:
    """One run of a learner: the last `new` instances of the piece are predicted; without a schedule all are learned."""

    piece: Piece
    new: int
    schedule: Ints | None
    learned: Ints
    """Label codes in the order in which they are learned."""
    before: Ints
    """For each new instance, how many of `learned` come before its prediction."""


class Calendar:
    """Keeps the instances whose label has not arrived yet.

    Instance t (from 0) is predicted at time t and learned at time t + delay, after the prediction that falls on that
    time: delay 0 learns each instance right after its prediction. An instance without a label, or whose delay is
    None or not a number, is predicted and never learned.
    """

    def __init__(self, delay: Delay = None) -> None:
        number = not (delay is None or isinstance(delay, str) or callable(delay))
        if number and not (isinstance(delay, Real) and delay >= 0):
            raise ParameterError(
                f"the delay is {delay!r}; give a number >= 0 of instances after which a label arrives, "
                "the name of the feature that holds it, or a function of x and y"
            )
        self.delay = delay
        self.field_met = False
        self.clock = 0
        self.waiting: Piece | None = None
        self.due = np.zeros(0)
        self.first = np.zeros(0)

    def plan(self, piece: Piece) -> Plan:
        """What to do with the next instances of the stream."""
        piece, delays = self._read_delays(piece)
        n = len(piece.block)
        now = np.arange(self.clock, self.clock + n, dtype=np.float64)
        due = np.where(piece.block.codes >= 0, now + delays, np.inf)
        self._note_first(piece.block, due)
        self.clock += n
        if self.waiting is None and np.array_equal(due, now):
            return Plan(piece, n, None, piece.block.codes, np.arange(n))
        old = 0
        if self.waiting is not None:
            old = len(self.waiting.block)
            piece = piece.after(self.waiting)
            due = np.concatenate([self.due, due])
        ready = np.flatnonzero(due < self.clock)
        ready = ready[np.argsort(due[ready], kind="stable")]
        before = np.searchsorted(due[ready], now)
        later = np.flatnonzero((due >= self.clock) & np.isfinite(due))
        self.waiting = piece.take(later) if len(later) else None
        self.due = due[later]
        learn_at = np.searchsorted(now, due[ready], side="right") + np.arange(len(ready))
        schedule = np.empty(n + len(ready), dtype=np.int64)
        schedule[np.arange(n) + before] = np.arange(old, old + n) + 1
        schedule[learn_at] = -(ready + 1)
        return Plan(piece, n, schedule, piece.block.codes[ready], before)

    def rest(self) -> Plan | None:
        """Labels that arrive after the last prediction, in their order."""
        if isinstance(self.delay, str) and self.clock and not self.field_met:
            raise UnknownNameError(f"no instance has the field {self.delay!r} that was to hold the delay of its label")
        if self.waiting is None:
            return None
        order = np.argsort(self.due, kind="stable")
        piece, self.waiting = self.waiting, None
        return Plan(piece, 0, -(order + 1), piece.block.codes[order], np.zeros(0, dtype=np.int64))

    def met(self, codes: Ints, at: Ints) -> Bools:
        """Whether each of these labels had been learned before the prediction at that time."""
        return np.asarray(self.first[codes] < at)

    def _note_first(self, block: Block, due: Floats) -> None:
        self.first = np.concatenate([self.first, np.full(len(block.labels) - len(self.first), np.inf)])
        labelled = block.codes >= 0
        np.minimum.at(self.first, block.codes[labelled], due[labelled])

    def _read_delays(self, piece: Piece) -> tuple[Piece, Floats | float]:
        if self.delay is None:
            return piece, 0.0
        if isinstance(self.delay, str):
            self.field_met = self.field_met or piece.block.vocabulary.id_of(self.delay) >= 0
            return _field(piece, self.delay)
        if not callable(self.delay):
            return piece, float(self.delay)
        rows = piece.block.rows() if piece.rows is None else piece.rows
        given = [self.delay(x, y) for x, y in zip(rows, piece.block.y, strict=True)]
        for d in given:
            if not (d is None or isinstance(d, Real)):
                raise DataError(f"the function of x and y gave a delay of {d!r}; it gives a number, or None for never")
        return piece, _checked(np.array([np.inf if d is None else float(d) for d in given], dtype=np.float64))


def _field(piece: Piece, name: str) -> tuple[Piece, Floats]:
    """Delays held by a feature of the instances; the learner does not see that feature."""
    block = piece.block
    _refuse_text(block, name)
    held = block.indices == block.vocabulary.id_of(name)
    delays = np.full(len(block), np.inf)
    delays[np.searchsorted(block.indptr, np.flatnonzero(held), side="right") - 1] = block.values[held]
    rows: list[Mapping[Any, Any]] | None = None
    if piece.rows is not None:
        rows = [{k: v for k, v in x.items() if k != name} for x in piece.rows]
    return Piece(block.keep(~held), rows), _checked(delays)


def _refuse_text(block: Block, name: str) -> None:
    known = block.vocabulary
    for i in np.unique(block.indices).tolist():
        if known.is_indicator(i) and known.level_of(i)[0] == name:
            raise DataError(f"the field {name!r} holds {known.level_of(i)[1]!r} where the delay of a label should be")


def _checked(delays: Floats) -> Floats:
    delays = np.where(np.isnan(delays), np.inf, delays)
    if (delays < 0).any():
        raise DataError(f"a label's delay is {delays.min():g}; a label arrives 0 or more instances after its instance")
    return delays
