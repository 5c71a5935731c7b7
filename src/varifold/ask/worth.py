"""Worth of a label: how unsure the classifier is, how much it would change, how new the instance is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from varifold.base.estimator import Name

__all__ = ["Instance", "Probabilities", "Regions", "entropy", "expected_gradient", "margin"]

Probabilities = Mapping[Any, float]
Instance = Mapping[Any, Any]
"""Features by name."""
_MOST_NAMES, _MOST_CELLS = 20_000, 100
_LARGEST = 1e100


def margin(probabilities: Probabilities) -> float:
    """Return 1 less the distance between the two most probable labels."""
    first, second = sorted([*probabilities.values(), 0.0, 0.0])[-1:-3:-1]
    return 1.0 - (first - second)


def entropy(probabilities: Probabilities) -> float:
    """Return the entropy as a share of the largest possible."""
    positive = [p for p in probabilities.values() if p > 0.0]
    return -sum(p * math.log(p) for p in positive) / math.log(max(2, len(probabilities)))


def expected_gradient(probabilities: Probabilities) -> float:
    """Return the expected length of the gradient of the log loss with respect to the scores of the labels.

    With the true label y it is the length of p - e_y; the expectation is over y by the probabilities.
    """
    squares = sum(p * p for p in probabilities.values())
    return sum(p * math.sqrt(max(0.0, 1.0 - 2.0 * p + squares)) for p in probabilities.values())


class Regions:
    """Parts of the feature space, and how many labels were requested in each.

    A part is a feature's value if that is a string, else one of four cells of its range: up to one standard deviation
    below or above the mean, or farther. Features, and the values of each, are bounded in number; the first ones
    are forgotten first.
    """

    def __init__(self) -> None:
        self.moments: dict[Name, list[float]] = {}  # count, mean, sum of squared deviations
        self.requested: dict[Name, dict[str, int]] = {}  # by feature: requests by cell

    def novelty(self, x: Instance) -> float:
        """Return how new an instance is: the mean over its features of 1 / (1 + labels requested in the same cell)."""
        cells, total = self._cells(x), 0.0
        for name, cell in cells:
            counts = self.requested.get(name)
            total += 1.0 if counts is None else 1.0 / (1 + counts.get(cell, 0))
        return total / len(cells) if cells else 0.0

    def length(self, x: Instance) -> float:
        """Return the length of an instance whose values are in standard deviations, at most 3; a string counts 1."""
        return math.sqrt(
            sum(1.0 if isinstance(v, str) else min(3.0, abs(self._score(name, v))) ** 2 for name, v in _present(x))
        )

    def observe(self, x: Instance) -> None:
        """Update the mean and deviation of the features of an instance."""
        moments = self.moments
        for name, value in x.items():
            if value is None or value != value or isinstance(value, str):
                continue
            one = moments.get(name)
            if one is None:
                one = moments[name] = [0.0, 0.0, 0.0]
            bounded = value if -_LARGEST < value < _LARGEST else math.copysign(_LARGEST, value)
            one[0] += 1.0
            step = bounded - one[1]
            one[1] += step / one[0]
            one[2] += step * (bounded - one[1])
        _forget(moments, _MOST_NAMES)

    def request(self, x: Instance) -> None:
        """Count a request."""
        for name, cell in self._cells(x):
            counts = self.requested.setdefault(name, {})
            counts[cell] = counts.get(cell, 0) + 1
            _forget(counts, _MOST_CELLS)
        _forget(self.requested, _MOST_NAMES)

    def _cells(self, x: Instance) -> list[tuple[Any, str]]:
        cells = []
        for name, value in x.items():
            if value is None or value != value:
                continue
            if isinstance(value, str):
                cells.append((name, f"={value}"))
            else:
                z = self._score(name, value)
                cells.append((name, ("-2" if z < -1.0 else "-1") if z < 0.0 else ("0" if z < 1.0 else "1")))
        return cells

    def _score(self, name: Any, value: float) -> float:
        """Return the distance from the feature's mean in standard deviations; 0 while that is unknown."""
        one = self.moments.get(name)
        if one is None or one[2] <= 0.0:
            return 0.0
        bounded = value if -_LARGEST < value < _LARGEST else math.copysign(_LARGEST, value)
        return (bounded - one[1]) / math.sqrt(one[2] / one[0])


def _present(x: Instance) -> list[tuple[Name, Any]]:
    return [(name, value) for name, value in x.items() if value is not None and value == value]


def _forget(table: dict[Any, Any], most: int) -> None:
    while len(table) > most:
        del table[next(iter(table))]
