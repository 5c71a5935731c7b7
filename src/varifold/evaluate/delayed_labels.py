"""Schedule labels that arrive later than their instances: which instance is predicted and learned when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from varifold.base import Block
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.evaluate.label_queue import LabelQueue, Waiting
from varifold.evaluate.metrics import Bools, Floats, Ints
from varifold.streams import Batch

_NONE: Ints = np.zeros(0, dtype=np.int64)
Delay = float | str | Callable[[Mapping[Any, Any], Any], float | None] | None


@dataclass(frozen=True)
class Schedule:
    """Order in which a learner predicts and learns the instances of a batch.

    The last `new` instances are predicted. `events` has one number per action, in order: i + 1 predicts instance i,
    -(i + 1) learns it; None means that each is predicted and then learned at once.
    """

    batch: Batch
    new: int
    events: Ints | None
    learned: Any
    """Label codes, or numbers to predict, in the order in which they are learned."""
    before: Ints
    """For each new instance, the number of `learned` before its prediction."""
    known: Bools
    """For each new instance, whether its label was learned before its prediction."""
    kept: Ints
    """Instances of the batch that wait for their label; they come first in the batch of the next schedule."""


class DelayedLabels:
    """Schedule labels that arrive a known time after their instance.

    Instance t (from 0) is predicted at time t and learned at time t + delay, after the prediction at that time: delay 0
    learns each instance right after its prediction. An instance without a label, or whose delay is None or not a
    number, is predicted and, if `learns_unlabelled`, learned without a label right after that. So is an instance
    that is not among the `share` of those, drawn at random with `seed`, whose label arrives.
    """

    def __init__(self, delay: Delay = None, share: float = 1.0, seed: int = 0) -> None:
        number = not (delay is None or isinstance(delay, str) or callable(delay))
        if number and not (isinstance(delay, Real) and delay >= 0):
            raise ParameterError(
                f"the delay is {delay!r}; pass a number >= 0 of instances after which a label arrives, "
                "the name of the feature that has it, or a function of x and y"
            )
        self.delay = delay
        self.share = share
        self._draws = np.random.default_rng(seed)
        self.field_seen = False
        self.clock = 0
        self.queue = LabelQueue()
        self.waiting: Batch | None = None
        """Instances in the queue, in the order of their numbers."""
        self.numbers = np.zeros(0, dtype=np.int64)
        self.first_learned = np.zeros(0)
        self.learned: frozenset[Any] = frozenset()
        """Labels that the learner knows from before the stream."""
        self.learns_unlabelled = False

    def schedule(self, batch: Batch) -> Schedule:
        """Schedule the next instances of the stream, and those whose label arrives in the meantime."""
        batch, delays = self._read_delays(batch)
        n = len(batch.block)
        now = np.arange(self.clock, self.clock + n, dtype=np.float64)
        due = np.where(batch.block.labelled, now + delays, np.inf)
        if self.share < 1.0:
            due[self._draws.random(n) >= self.share] = np.inf
        known = self._known(batch.block, now, due)
        self.clock += n
        if self.waiting is None and np.array_equal(due, now):
            return Schedule(batch, n, None, _learned(batch.block), np.arange(n), known, _NONE)
        old = len(self.numbers)
        if self.waiting is not None:
            batch = batch.after(self.waiting)
            due = np.concatenate([self._due_before(self.clock), due])
        ready = np.flatnonzero(due < self.clock)
        ready = ready[np.argsort(due[ready], kind="stable")]
        before = np.searchsorted(due[ready], now)
        kept = self._keep(batch, old, due)
        events = self._events(len(batch.block), old, now, due, ready)
        return Schedule(batch, n, events, _learned(batch.block)[ready], before, known, kept)

    def _events(self, rows: int, old: int, now: Floats, due: Floats, ready: Ints) -> Ints:
        """Order predictions, labels that arrive, and instances that are learned without a label."""
        never = np.flatnonzero(np.isinf(due[old:])) if self.learns_unlabelled else np.zeros(0, dtype=np.int64)
        codes = np.concatenate([np.arange(old, rows) + 1, -(ready + 1), -(rows + old + never + 1)])
        times = np.concatenate([now, due[ready], now[never]])
        kinds = np.repeat([0, 1, 1], [len(now), len(ready), len(never)])
        order: Ints = codes[np.lexsort((kinds, times))]
        return order

    def remaining(self) -> Schedule | None:
        """Learn the labels that arrive after the last prediction, in their order; None when there are none."""
        if isinstance(self.delay, str) and self.clock and not self.field_seen:
            raise UnknownNameError(
                f"no instance has the field {self.delay!r}, which should contain the delay of its label"
            )
        if self.waiting is None:
            return None
        order = np.argsort(self._due_before(np.inf), kind="stable")
        batch, self.waiting = self.waiting, None
        return Schedule(batch, 0, -(order + 1), _learned(batch.block)[order], _NONE, _NONE.astype(bool), _NONE)

    def _due_before(self, now: float) -> Floats:
        """Return when the labels of the waiting instances arrive; infinite for those that stay in the queue."""
        due = np.full(len(self.numbers), np.inf)
        taken = self.queue.take_due(now)
        if taken:
            when, numbers = zip(*taken, strict=True)
            due[np.searchsorted(self.numbers, numbers)] = when
        return due

    def _keep(self, batch: Batch, old: int, due: Floats) -> Ints:
        """Keep instances that wait beyond this batch: old ones not due yet, and new ones whose label arrives later.

        Return which they are.
        """
        new = old + np.flatnonzero((due[old:] >= self.clock) & np.isfinite(due[old:]))
        start = self.clock - (len(due) - old) - old
        added = [
            self.queue.add(Waiting(start + i, due=when))
            for i, when in zip(new.tolist(), due[new].tolist(), strict=True)
        ]
        left = np.flatnonzero(np.isinf(due[:old]))
        self.numbers = np.concatenate([self.numbers[left], np.array(added, dtype=np.int64)])
        kept: Ints = np.concatenate([left, new])
        self.waiting = batch.take(kept) if len(kept) else None
        return kept

    def _known(self, block: Block, now: Floats, due: Floats) -> Bools:
        """Return whether the label of each instance is learned before the instance is predicted."""
        new = block.labels.values[len(self.first_learned) :]
        first = [-np.inf if label in self.learned else np.inf for label in new]
        self.first_learned = np.concatenate([self.first_learned, first])
        labelled = np.flatnonzero(block.codes >= 0)
        codes = block.codes[labelled]
        np.minimum.at(self.first_learned, codes, due[labelled])
        known = np.zeros(len(block), dtype=bool)
        known[labelled] = self.first_learned[codes] < now[labelled]
        return known

    def _read_delays(self, batch: Batch) -> tuple[Batch, Floats | float]:
        if self.delay is None:
            return batch, 0.0
        if isinstance(self.delay, str):
            self.field_seen = self.field_seen or batch.block.vocabulary.id_of(self.delay) >= 0
            return _field(batch, self.delay)
        if not callable(self.delay):
            return batch, float(self.delay)
        rows = batch.block.rows() if batch.rows is None else batch.rows
        delays = [self.delay(x, y) for x, y in zip(rows, batch.block.y, strict=True)]
        for d in delays:
            if not (d is None or isinstance(d, Real)):
                raise DataError(
                    f"the function of x and y returned a delay of {d!r}; it must return a number, or None for never"
                )
        return batch, _checked(np.array([np.inf if d is None else float(d) for d in delays], dtype=np.float64))


def _learned(block: Block) -> Any:
    """Return the value to learn for each instance: the label's code, or the number to predict."""
    return block.codes if block.targets is None else block.targets


def _field(batch: Batch, name: str) -> tuple[Batch, Floats]:
    """Return the delays in a feature of the instances, and the batch without that feature."""
    block = batch.block
    _reject_text(block, name)
    is_delay = block.indices == block.vocabulary.id_of(name)
    delays = np.full(len(block), np.inf)
    delays[np.searchsorted(block.indptr, np.flatnonzero(is_delay), side="right") - 1] = block.values[is_delay]
    rows: list[Mapping[Any, Any]] | None = None
    if batch.rows is not None:
        rows = [{k: v for k, v in x.items() if k != name} for x in batch.rows]
    return replace(batch, block=block.keep(~is_delay), rows=rows), _checked(delays)


def _reject_text(block: Block, name: str) -> None:
    known = block.vocabulary
    for i in np.unique(block.indices).tolist():
        if known.is_indicator(i) and known.level_of(i)[0] == name:
            raise DataError(f"the field {name!r} has {known.level_of(i)[1]!r} instead of the delay of a label")


def _checked(delays: Floats) -> Floats:
    delays = np.where(np.isnan(delays), np.inf, delays)
    if (delays < 0).any():
        raise DataError(f"a label's delay is {delays.min():g}; a label arrives 0 or more instances after its instance")
    return delays
