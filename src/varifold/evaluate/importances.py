"""Measure importances while a stream is learned, on instances that are about to be learned, never on learned ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from varifold.base import Block
from varifold.base.importances import Importance, column_name, columns_of, extra_losses
from varifold.errors import ParameterError

__all__ = ["ImportanceTracker", "importances_of", "tracker_of"]

FIRST = 16
"""Instances before the first measurement."""
ROWS = 256
"""Most instances between two measurements; at the beginning the interval doubles."""
SAMPLE = 48
"""Instances of a measurement that are predicted again with a column permuted."""
COLUMNS = 24
"""Columns measured at a time; the others follow later."""
MEMORY = 0.95
"""Factor by which earlier measurements fade: about the last twenty of a column contribute."""


class _Sums:
    """Exponentially faded sums over the instances on which a column was measured."""

    def __init__(self) -> None:
        self.count = 0.0
        self.weights = 0.0
        self.total = 0.0
        self.squares = 0.0
        self.present = 0.0
        self.times = 0.0

    def add(self, extra: Any, present: float) -> None:
        """Fade the earlier sums and add the extra losses of some instances."""
        self.count = MEMORY * self.count + len(extra)
        self.weights = MEMORY * MEMORY * self.weights + len(extra)
        self.total = MEMORY * self.total + float(extra.sum())
        self.squares = MEMORY * self.squares + float(np.square(extra).sum())
        self.present = MEMORY * self.present + present
        self.times = MEMORY * self.times + 1.0

    def importance(self) -> Importance:
        """Return mean, standard error and presence."""
        mean = self.total / self.count
        spread = max(self.squares / self.count - mean * mean, 0.0)
        instances = self.count * self.count / self.weights  # effective number of instances
        return Importance(mean, float(np.sqrt(spread / instances)), self.present / self.times)


class ImportanceTracker:
    """Measure, before a learner learns the next instances, how much it would lose without each column."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.rng = np.random.default_rng(0)
        self.sums: dict[str | int, _Sums] = {}
        self.turn = 0
        self.next = FIRST

    def measure(self, block: Block, done: int) -> None:
        """Measure some columns on a sample of the instances that will be learned next; `done` instances came before.

        The interval between measurements doubles up to `ROWS` instances, so that a short stream has some too.
        """
        known = np.flatnonzero(block.labelled)
        if done < self.next or len(known) < 2 or not self.learner.steps:
            return
        self.next = done + min(done, ROWS)
        sample = block.take(np.sort(self.rng.permutation(known)[:SAMPLE]))
        here = {column_name(sample, column): column for column in columns_of(sample)}
        for name in self._whose_turn(list(dict.fromkeys([*self.sums, *here]))):
            if name in here:
                extra, present = extra_losses(self.learner, sample, here[name], [self.rng.permutation(len(sample))])
            else:
                extra, present = np.zeros(len(sample)), 0.0  # no instance has the column
            if len(extra):
                self.sums.setdefault(name, _Sums()).add(extra, present)

    def _whose_turn(self, names: list[str | int]) -> list[str | int]:
        """Return the next `COLUMNS` names."""
        start, self.turn = self.turn % max(1, len(names)), self.turn + COLUMNS
        return (names[start:] + names[:start])[:COLUMNS]

    def table(self) -> dict[str | int, Importance]:
        """Return the importance by column, largest first."""
        importances = {name: sums.importance() for name, sums in self.sums.items()}
        return dict(sorted(importances.items(), key=lambda item: -item[1].loss))


def tracker_of(learner: Any) -> ImportanceTracker:
    """Make the tracker of a learner of this library."""
    if not hasattr(learner, "run_block"):
        raise ParameterError(f"track='permutation' needs a learner of varifold, not a {type(learner).__name__}")
    return ImportanceTracker(learner)


def importances_of(
    learner: Any, track: str | None, tracker: ImportanceTracker | None
) -> Callable[[], dict[Any, float]] | None:
    """Return the function that computes the importances at every point of the curve, None without tracking."""
    if track is None:
        return None
    if tracker is not None:
        return lambda: {name: importance.loss for name, importance in tracker.table().items()}
    if hasattr(learner, "importances"):
        return lambda: dict(learner.importances())
    if hasattr(learner, "features"):
        return lambda: {name: feature.weight for name, feature in learner.features.items()}
    raise ParameterError(f"{type(learner).__name__} has no importances to track")
