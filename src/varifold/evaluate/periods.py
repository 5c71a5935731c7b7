"""Metrics by period: per hour, day, week, month or year of a time column, or per number of instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from varifold._engine.names.vocabulary import is_missing
from varifold.base.clock import parse_time
from varifold.errors import DataError, ParameterError
from varifold.evaluate.metrics import Bools, Ints, LabelCounts, cohens_kappa, grown
from varifold.evaluate.regression_metrics import RegressionTally
from varifold.streams import Batch

__all__ = ["PERIODS", "Period", "Periods", "RegressionPeriod"]

NO_TIME = "(no time)"
PERIODS: dict[str, Callable[[datetime], str]] = {
    "hour": lambda t: f"{t:%Y-%m-%d %H}:00",
    "day": lambda t: f"{t:%Y-%m-%d}",
    "week": lambda t: "{}-W{:02}".format(*t.isocalendar()),
    "month": lambda t: f"{t:%Y-%m}",
    "year": lambda t: f"{t:%Y}",
}
"""Functions that name the period of a time."""


@dataclass(frozen=True)
class Period:
    """Part of a classifier's run in one period."""

    name: str
    instances: int
    scored: int
    cer: float
    accuracy: float
    f1: float
    balanced_accuracy: float
    kappa: float
    log_loss: float
    majority_cer: float
    """CER of predicting the label learned most often so far."""
    confusion: Ints
    """As `Result.confusion`."""

    @classmethod
    def of(cls, name: str, instances: int, counts: LabelCounts, labels: int, positive: int | None) -> Period:
        """Make the period of these counts."""
        counts.confusion = grown(counts.confusion, labels)
        confusion = counts.confusion
        return cls(
            name=name,
            instances=instances,
            scored=int(confusion.sum()),
            kappa=cohens_kappa(confusion),
            confusion=confusion,
            **counts.scores(positive),
        )

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name."""
        names = ("cer", "accuracy", "f1", "balanced_accuracy", "kappa", "log_loss", "majority_cer")
        return {name: float(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class RegressionPeriod:
    """Part of a regressor's run in one period."""

    name: str
    instances: int
    scored: int
    mae: float
    rmse: float
    mean_mae: float
    """MAE of predicting the mean of the targets learned so far."""

    @classmethod
    def of(cls, name: str, instances: int, tally: RegressionTally) -> RegressionPeriod:
        """Make the period of these sums."""
        scores = tally.scores()
        return cls(name, instances, tally.scored, scores["mae"], scores["rmse"], scores["mean_mae"])

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name."""
        return {name: float(getattr(self, name)) for name in ("mae", "rmse", "mean_mae")}


class Periods:
    """Sum up a run by period, in the order in which the periods begin in the stream."""

    def __init__(self, by: str | int, new_tally: Callable[[], Any]) -> None:
        is_count = isinstance(by, int) and not isinstance(by, bool) and by >= 1
        if not is_count and by not in PERIODS:
            raise ParameterError(
                f"by must be one of {', '.join(PERIODS)}, or a whole number of instances >= 1. Got {by!r} instead."
            )
        self.by = by
        self.new_tally = new_tally
        self.instances: dict[str, int] = {}
        self.tallies: dict[str, Any] = {}

    def names(self, batch: Batch, start: int) -> list[str]:
        """Return the period of each instance; `start` instances came before."""
        if isinstance(self.by, int):
            first = [(start + i) // self.by * self.by for i in range(len(batch.block))]
            return [f"{lo + 1:,} to {lo + self.by:,}" for lo in first]
        if batch.times is None:
            raise DataError(
                f"metrics by {self.by} need the time of each instance: name its column (time='...', --time COL) and "
                "keep the order of the rows"
            )
        period_of = PERIODS[self.by]
        known: dict[Any, str] = {}
        for i, value in enumerate(batch.times):
            if value not in known:
                known[value] = self._name(value, period_of, start + i + 1)
        return [known[value] for value in batch.times]

    def _name(self, value: Any, period_of: Callable[[datetime], str], number: int) -> str:
        if is_missing(value) or value == "":
            return NO_TIME
        try:
            return period_of(parse_time(value))
        except DataError as error:
            raise DataError(f"metrics by {self.by}, instance {number:,}: {error}") from error

    def parts(self, names: list[str], scored: Bools) -> Iterator[tuple[Any, Bools]]:
        """Yield the tally of each period in a batch, and which instances to add to it."""
        keys, places = np.unique(np.array(names, dtype=object), return_inverse=True)
        first = {key: names.index(key) for key in keys}
        for i, key in sorted(enumerate(keys), key=lambda pair: first[pair[1]]):
            here = places == i
            self.instances[key] = self.instances.get(key, 0) + int(here.sum())
            yield self.tallies.setdefault(key, self.new_tally()), here & scored

    def results(self, make: Callable[..., Any], *more: Any) -> list[Any]:
        """Make the metrics of every period."""
        return [make(name, self.instances[name], tally, *more) for name, tally in self.tallies.items()]
