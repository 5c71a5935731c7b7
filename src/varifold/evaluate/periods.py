"""Metrics by period: per hour, day, week, month or year of a time column, or per so many instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from varifold.errors import DataError, ParameterError
from varifold.evaluate.metrics import Bools, Floats, Ints, balanced_accuracy, cohens_kappa, f1, grown
from varifold.streams import Batch
from varifold.streams.clock import parse_time
from varifold.streams.readers.missing import is_missing

__all__ = ["PERIODS", "Period", "Periods", "RegressionPeriod", "RegressionPeriods"]

NO_TIME = "(no time)"
PERIODS: dict[str, Callable[[datetime], str]] = {
    "hour": lambda t: f"{t:%Y-%m-%d %H}:00",
    "day": lambda t: f"{t:%Y-%m-%d}",
    "week": lambda t: "{}-W{:02}".format(*t.isocalendar()),
    "month": lambda t: f"{t:%Y-%m}",
    "year": lambda t: f"{t:%Y}",
}
"""How an instance's period is named."""


@dataclass(frozen=True)
class Period:
    """The part of a run that fell into one period."""

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
    """CER of answering the label learned most often so far."""
    confusion: Ints
    """As `Result.confusion`."""

    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        names = ("cer", "accuracy", "f1", "balanced_accuracy", "kappa", "log_loss", "majority_cer")
        return {name: float(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class RegressionPeriod:
    """The part of a regressor's run that fell into one period."""

    name: str
    instances: int
    scored: int
    mae: float
    rmse: float
    mean_mae: float
    """MAE of predicting the mean of the targets learned so far."""

    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return {name: float(getattr(self, name)) for name in ("mae", "rmse", "mean_mae")}


class _Sums:
    """What is added up over the instances of one period."""

    def __init__(self) -> None:
        self.instances = 0
        self.confusion: Ints = np.zeros((0, 1), dtype=np.int64)
        self.majority_errors = 0
        self.losses = 0.0
        self.rated = 0

    def add(self, truth: Ints, predicted: Ints, majority: Ints, losses: Floats, labels: int) -> None:
        """Add instances that are scored; a loss is NaN where there was no probability."""
        self.confusion = grown(self.confusion, labels)
        np.add.at(self.confusion, (truth, predicted + 1), 1)
        self.majority_errors += int((truth != majority).sum())
        rated = ~np.isnan(losses)
        self.losses += float(losses[rated].sum())
        self.rated += int(rated.sum())

    def period(self, name: str, labels: int, positive: int | None) -> Period:
        """The metrics."""
        confusion = grown(self.confusion, labels)
        scored = int(confusion.sum())
        hits = int(np.diagonal(confusion, offset=1).sum())
        nothing = float("nan")
        return Period(
            name=name,
            instances=self.instances,
            scored=scored,
            cer=(scored - hits) / scored if scored else nothing,
            accuracy=hits / scored if scored else nothing,
            f1=f1(confusion, positive),
            balanced_accuracy=balanced_accuracy(confusion),
            kappa=cohens_kappa(confusion),
            log_loss=self.losses / self.rated if self.rated else nothing,
            majority_cer=self.majority_errors / scored if scored else nothing,
            confusion=confusion,
        )


class _Named:
    """Names the period of each instance."""

    def __init__(self, by: str | int) -> None:
        is_count = isinstance(by, int) and not isinstance(by, bool) and by >= 1
        if not is_count and by not in PERIODS:
            raise ParameterError(
                f"by must be one of {', '.join(PERIODS)}, or a whole number of instances >= 1. Got {by!r} instead."
            )
        self.by = by

    def names(self, batch: Batch, start: int) -> list[str]:
        """The period of each instance; `start` instances came before."""
        if isinstance(self.by, int):
            first = [(start + i) // self.by * self.by for i in range(len(batch.block))]
            return [f"{lo + 1:,} to {lo + self.by:,}" for lo in first]
        if batch.times is None:
            raise DataError(
                f"metrics by {self.by} need the time of each instance: name its column (time='...', --time COL) and "
                "keep the order of the rows"
            )
        named = PERIODS[self.by]
        known: dict[Any, str] = {}
        for i, value in enumerate(batch.times):
            if value not in known:
                known[value] = self._named(value, named, start + i + 1)
        return [known[value] for value in batch.times]

    def _named(self, value: Any, named: Callable[[datetime], str], number: int) -> str:
        if is_missing(value) or value == "":
            return NO_TIME
        try:
            return named(parse_time(value))
        except DataError as error:
            raise DataError(f"metrics by {self.by}, instance {number:,}: {error}") from error


class Periods(_Named):
    """Adds up a run by period, in the order in which the periods begin in the stream."""

    def __init__(self, by: str | int) -> None:
        super().__init__(by)
        self.sums: dict[str, _Sums] = {}

    def add(
        self, names: list[str], scored: Bools, truth: Ints, predicted: Ints, majority: Ints, losses: Floats, labels: int
    ) -> None:
        """Add a batch; the arrays have one entry per instance."""
        keys, places = np.unique(np.array(names, dtype=object), return_inverse=True)
        first = {key: names.index(key) for key in keys}
        for i, key in sorted(enumerate(keys), key=lambda pair: first[pair[1]]):
            sums = self.sums.setdefault(key, _Sums())
            here = places == i
            sums.instances += int(here.sum())
            chosen = here & scored
            sums.add(truth[chosen], predicted[chosen], majority[chosen], losses[chosen], labels)

    def results(self, labels: int, positive: int | None) -> list[Period]:
        """The metrics of every period."""
        return [sums.period(name, labels, positive) for name, sums in self.sums.items()]


class RegressionPeriods(_Named):
    """The same for a regressor."""

    def __init__(self, by: str | int) -> None:
        super().__init__(by)
        self.counts: dict[str, list[int]] = {}
        self.sums: dict[str, Floats] = {}

    def add(self, names: list[str], scored: Bools, errors: Floats, by_mean: Floats) -> None:
        """Add a batch: the errors of its predictions, and those of the running mean."""
        for i, name in enumerate(names):
            count = self.counts.setdefault(name, [0, 0])
            sums = self.sums.setdefault(name, np.zeros(3))
            count[0] += 1
            if scored[i]:
                count[1] += 1
                sums += (abs(errors[i]), errors[i] ** 2, abs(by_mean[i]))

    def results(self) -> list[RegressionPeriod]:
        """The metrics of every period."""
        found = []
        for name, (instances, scored) in self.counts.items():
            absolute, squared, mean = (self.sums[name] / scored if scored else np.full(3, np.nan)).tolist()
            found.append(RegressionPeriod(name, instances, scored, absolute, squared**0.5, mean))
        return found
