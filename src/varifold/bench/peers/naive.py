"""Naive predictors: what a stream's own columns or its last labels say, without learning from the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from river import base

from varifold.bench.peers.columns import Frequencies

__all__ = ["BaseRate", "Bookmakers", "ByColumn", "Column", "LastLabel"]


class BaseRate(base.Classifier):
    """Predict the shares of the labels so far."""

    _multiclass = True
    takes_strings = True

    def __init__(self) -> None:
        self.frequencies = Frequencies()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Count the label."""
        self.frequencies.learn(y)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the shares so far."""
        return self.frequencies.shares()


class ByColumn(base.Classifier):
    """Predict the shares of the labels among the earlier instances with the same value of a column."""

    _multiclass = True
    takes_strings = True

    def __init__(self, column: str) -> None:
        self.column = column
        self.by_value: dict[Any, Frequencies] = defaultdict(Frequencies)
        self.all = Frequencies()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Count the label."""
        self.by_value[x.get(self.column)].learn(y)
        self.all.learn(y)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the shares so far; those of all instances for a value without any."""
        value = x.get(self.column)
        known = value in self.by_value and len(self.by_value[value].counts) == len(self.all.counts)
        return (self.by_value[value] if known else self.all).shares()


class LastLabel(base.Classifier):
    """Predict the shares of the labels among the earlier instances that followed the same label as this one."""

    _multiclass = True
    takes_strings = True

    def __init__(self) -> None:
        self.last: Any = None
        self.after: dict[Any, Frequencies] = defaultdict(Frequencies)
        self.all = Frequencies()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Count the label after the one before it."""
        self.after[self.last].learn(y)
        self.all.learn(y)
        self.last = y

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the shares so far."""
        known = self.last in self.after and len(self.after[self.last].counts) == len(self.all.counts)
        return (self.after[self.last] if known else self.all).shares()


class Bookmakers(BaseRate):
    """Predict the mean of the bookmakers' probabilities: 1 / odds of home win, draw and away win, scaled to sum to 1.

    Closing odds are preferred, since they are the later ones; without odds, the shares of the labels so far.
    """

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the mean over the bookmakers that quote all three results."""
        means = [name[:-1] for name in x if name.endswith("D") and f"{name[:-1]}H" in x and f"{name[:-1]}A" in x]
        closing = [name for name in means if name.endswith("C")]
        sums = {"H": 0.0, "D": 0.0, "A": 0.0}
        for name in closing or means:
            inverse = {y: 1.0 / x[f"{name}{y}"] for y in sums}
            total = sum(inverse.values())
            for y in sums:
                sums[y] += inverse[y] / total
        quoted = len(closing or means)
        return {y: p / quoted for y, p in sums.items()} if quoted else super().predict_proba_one(x)


class Column(base.Regressor):
    """Predict the value of a column; if it is absent, that of a second one, else the last target."""

    takes_strings = True

    def __init__(self, column: str, otherwise: str = "") -> None:
        self.column = column
        self.otherwise = otherwise
        self.last = 0.0

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Keep the target."""
        self.last = y

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the value of the column."""
        value = x.get(self.column, x.get(self.otherwise))
        return self.last if value is None else float(value)
