"""Classification and regression tasks of an evaluation: score, keep and summarise predictions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from varifold.base import Block, Labels
from varifold.errors import UnknownNameError
from varifold.evaluate.delayed_labels import Schedule
from varifold.evaluate.metrics import Bools, Floats, Ints, LabelCounts, Majority, Tally
from varifold.evaluate.periods import Period, Periods, RegressionPeriod
from varifold.evaluate.predictions import Predictions, RegressionPredictions, joined, joined_regression
from varifold.evaluate.regression_metrics import RegressionTally, RunningMean
from varifold.evaluate.result import Curve, RegressionCurve, RegressionResult, Result
from varifold.evaluate.runners import Outputs
from varifold.evaluate.uncertainty import IntervalTally, SetTally
from varifold.evaluate.windows import Windows, running_mean, share

__all__ = ["Classification", "Collected", "Regression", "Scores", "label_losses"]


class Scores(NamedTuple):
    """Scores of the new instances of a schedule, for the curve and the periods."""

    scored: Bools
    """Which instances count."""
    errors: Any
    """Whether the label was wrong, or the absolute error."""
    losses: Floats
    """Squared error, or of labels the columns of `label_losses`; NaN where there is none."""
    baseline: Any
    """Predictions of the majority class or of the running mean."""
    band: Floats | None = None
    """See `Windows.add`."""


def label_losses(log_losses: Floats) -> Floats:
    """Return three losses per instance, computed from the probability p of the true label: log, square and hinge.

    The square loss is (1 - p)². The hinge loss is max(0, 1 - f) with the log-odds f = log(p / (1 - p)), which for a
    learner whose probability is the logistic function of its margin is that margin.
    """
    with np.errstate(divide="ignore"):  # p = 1: the log-odds are infinite
        odds = -log_losses - np.log(-np.expm1(-log_losses))
    return np.column_stack([log_losses, np.square(np.expm1(-log_losses)), np.maximum(0.0, 1.0 - odds)])


class Collected(NamedTuple):
    """Sums of a run that do not depend on its task."""

    counts: dict[str, Any]
    """Fields about the stream and the time that all results share."""
    windows: Windows
    periods: Periods | None
    predictions: list[Any] | None
    """Kept predictions, batch by batch; None if they are not kept."""


class Classification:
    """Score a classifier."""

    is_regression = False
    new_tally = LabelCounts

    def __init__(self, coverages: tuple[float, ...]) -> None:
        self.tally = Tally()
        self.majority = Majority()
        self.label_counts = np.zeros(0, dtype=np.int64)
        self.labels = Labels()
        self.sets = SetTally(coverages)

    def score(self, block: Block, schedule: Schedule, outputs: Outputs, scored: Bools) -> Scores:
        """Add the predictions for the new instances, of which those that are `scored` count."""
        codes, predicted = block.codes, outputs.predicted
        self.labels = block.labels
        labels = len(self.labels)
        majority = self.majority.predict(schedule.learned, schedule.before, labels)
        self.tally.add(codes[scored], predicted[scored], majority[scored], labels)
        losses = np.full(schedule.new, np.nan)
        if outputs.probabilities is not None:
            rated = np.flatnonzero(scored & (predicted >= 0) & schedule.known)
            losses[rated] = self.tally.rate(codes[rated], predicted[rated], outputs.probabilities[rated])
        if self.sets.coverages:
            known = self.sets.known_before(schedule.learned, schedule.before)
            self.sets.add(codes[scored], outputs.regions[scored], known[scored])
        self.label_counts = np.concatenate(
            [self.label_counts, np.zeros(labels - len(self.label_counts), dtype=np.int64)]
        )
        self.label_counts += np.bincount(codes[codes >= 0], minlength=labels)
        return Scores(scored, predicted != codes, label_losses(losses), majority)

    def add_to_period(self, counts: LabelCounts, rows: Bools, block: Block, outputs: Outputs, scores: Scores) -> None:
        """Add some of the instances to a period."""
        losses = scores.losses[rows, 0]
        counts.add(block.codes[rows], outputs.predicted[rows], scores.baseline[rows], len(block.labels))
        counts.add_losses(losses[~np.isnan(losses)])

    def predictions(self, block: Block, outputs: Outputs, **place: Any) -> Predictions:
        """Make a record of the predictions."""
        return Predictions(
            **place,
            labels=block.labels.values,
            truth=block.codes.copy(),
            predicted=outputs.predicted,
            probabilities=outputs.probabilities,
            coverages=self.sets.coverages,
            sets=outputs.regions,
        )

    def result(self, collected: Collected, positive: Hashable) -> Result:
        """Compute the result."""
        counts, windows, periods, predictions = collected
        labels = self.labels.values
        code = _positive_code(labels, self.label_counts, positive)
        confusion = self.tally.counts.confusion
        by_label = confusion.sum(axis=1)
        scored = int(by_label.sum())
        errors, counted, losses, rated = windows.sums()
        log_loss, square, hinge = losses.reshape(-1, 3).T
        facts: dict[str, Any] = {**self.tally.scores(code), **counts}
        return Result(
            **facts,
            majority_share=float(by_label.max()) / scored if scored else float("nan"),
            scored=scored,
            labels=labels,
            positive=None if code is None else labels[code],
            confusion=confusion,
            curve=Curve(
                cer=running_mean(errors, counted),
                window_cer=share(errors, counted),
                log_loss=running_mean(log_loss, rated),
                window_log_loss=share(log_loss, rated),
                square=running_mean(square, rated),
                hinge=running_mean(hinge, rated),
                **windows.features(),
            ),
            periods=[] if periods is None else periods.results(Period.of, len(labels), code),
            predictions=None if predictions is None else joined(predictions, labels),
            sets=self.sets.scores(),
        )


class Regression:
    """Score a regressor."""

    is_regression = True
    new_tally = RegressionTally

    def __init__(self, coverages: tuple[float, ...], quantile: float) -> None:
        self.tally = RegressionTally(quantile)
        self.mean = RunningMean()
        self.intervals = IntervalTally(coverages)

    def score(self, block: Block, schedule: Schedule, outputs: Outputs, scored: Bools) -> Scores:
        """Add the predictions for the new instances, of which those that are `scored` count."""
        targets, predicted = _targets(block), outputs.predicted
        scored = scored & (self.mean.count + schedule.before > 0)
        mean = self.mean.predict(schedule.learned, schedule.before)
        self.tally.add(targets[scored], predicted[scored], mean[scored])
        errors = targets - predicted
        band = None
        if self.intervals.coverages:
            self.intervals.add(targets[scored], outputs.regions[scored])
            band = np.column_stack([errors, outputs.regions[:, -1] - predicted[:, None]])
        return Scores(scored, np.abs(errors), np.where(scored, np.square(errors), np.nan), mean, band)

    def add_to_period(
        self, tally: RegressionTally, rows: Bools, block: Block, outputs: Outputs, scores: Scores
    ) -> None:
        """Add some of the instances to a period."""
        tally.add(_targets(block)[rows], outputs.predicted[rows], scores.baseline[rows])

    def predictions(self, block: Block, outputs: Outputs, **place: Any) -> RegressionPredictions:
        """Make a record of the predictions."""
        return RegressionPredictions(
            **place,
            truth=_targets(block).copy(),
            predicted=outputs.predicted,
            coverages=self.intervals.coverages,
            bounds=outputs.regions,
        )

    def result(self, collected: Collected, positive: Hashable) -> RegressionResult:
        """Compute the result; there is no positive label."""
        counts, windows, periods, predictions = collected
        errors, scored, losses, _ = windows.sums()
        facts: dict[str, Any] = {**self.tally.scores(), **counts}
        return RegressionResult(
            **facts,
            quantile=self.tally.quantile,
            scored=self.tally.scored,
            lowest=self.tally.lowest if self.tally.scored else float("nan"),
            highest=self.tally.highest if self.tally.scored else float("nan"),
            curve=RegressionCurve(
                mae=running_mean(errors, scored),
                window_mae=share(errors, scored),
                rmse=np.sqrt(running_mean(losses, scored)),
                window_rmse=np.sqrt(share(losses, scored)),
                band=windows.band(),
                **windows.features(),
            ),
            periods=[] if periods is None else periods.results(RegressionPeriod.of),
            predictions=None if predictions is None else joined_regression(predictions),
            intervals=self.intervals.scores(),
        )


def _targets(block: Block) -> Floats:
    return np.full(len(block), np.nan) if block.targets is None else block.targets


def _positive_code(labels: list[Any], counts: Ints, positive: Hashable) -> int | None:
    if positive is not None:
        texts: list[Any] = [str(y) for y in labels]
        for names in (labels, texts):
            if positive in names:
                return names.index(positive)
        raise UnknownNameError(f"the positive label {positive!r} is not in the stream; it has {labels!r}")
    if len(labels) > 2 or not labels:
        return None
    return int(len(labels) - 1 - counts[::-1].argmin())
