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
_MOST_NAMES = 20_000
_LARGEST = 1e100
_CELLS = 2
"""Cells on either side of a feature's mean, one standard deviation wide; the outer ones are open."""


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

    A part is a feature's value if that is a string, else a cell of its range: cells are a standard deviation wide and
    counted from the mean. Features are bounded in number; the first ones seen are forgotten first.
    """

    def __init__(self) -> None:
        self.moments: dict[Name, list[float]] = {}  # count, mean, sum of squared deviations
        self.requested: dict[Name, dict[str, int]] = {}  # by feature: requests by cell

    def novelty(self, x: Instance) -> float:
        """Return how new an instance is: the mean over its features of 1 / (1 + labels requested in the same cell)."""
        cells = self._cells(x)
        if not cells:
            return 0.0
        empty: dict[str, int] = {}
        return sum(1.0 / (1.0 + self.requested.get(name, empty).get(cell, 0)) for name, cell in cells) / len(cells)

    def length(self, x: Instance) -> float:
        """Return the length of an instance whose values are in standard deviations, at most 3; a string counts 1."""
        return math.sqrt(
            sum(1.0 if isinstance(v, str) else min(3.0, abs(self._score(name, v))) ** 2 for name, v in _present(x))
        )

    def observe(self, x: Instance) -> None:
        """Update the mean and deviation of the features of an instance."""
        for name, value in _present(x):
            if isinstance(value, str):
                continue
            value = _bounded(value)
            one = self.moments.setdefault(name, [0.0, 0.0, 0.0])
            one[0] += 1.0
            step = value - one[1]
            one[1] += step / one[0]
            one[2] += step * (value - one[1])
        _forget(self.moments)

    def request(self, x: Instance) -> None:
        """Count a request."""
        for name, cell in self._cells(x):
            counts = self.requested.setdefault(name, {})
            counts[cell] = counts.get(cell, 0) + 1
            _forget(counts)
        _forget(self.requested)

    def _cells(self, x: Instance) -> list[tuple[Name, str]]:
        return [
            (
                name,
                f"={v}" if isinstance(v, str) else str(min(_CELLS - 1, max(-_CELLS, math.floor(self._score(name, v))))),
            )
            for name, v in _present(x)
        ]

    def _score(self, name: Name, value: float) -> float:
        """Return the distance from the feature's mean in standard deviations; 0 while that is unknown."""
        n, mean, squares = self.moments.get(name, (0.0, 0.0, 0.0))
        return (_bounded(value) - mean) / math.sqrt(squares / n) if squares > 0.0 else 0.0


def _present(x: Instance) -> list[tuple[Name, Any]]:
    return [(name, value) for name, value in x.items() if value is not None and value == value]


def _bounded(value: float) -> float:
    """Return a value whose square can be summed."""
    return max(-_LARGEST, min(_LARGEST, float(value)))


def _forget(table: dict[Any, Any]) -> None:
    while len(table) > _MOST_NAMES:
        del table[next(iter(table))]
