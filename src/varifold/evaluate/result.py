"""The results of evaluations."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varifold.base.importances import Importance
from varifold.evaluate.metrics import METRICS, Floats, Ints, cohens_kappa
from varifold.evaluate.periods import Period, RegressionPeriod
from varifold.evaluate.predictions import Predictions, RegressionPredictions
from varifold.evaluate.regression_metrics import REGRESSION_METRICS
from varifold.evaluate.uncertainty import IntervalScores, SetScores


@dataclass(frozen=True)
class Curve:
    """A run seen over time; every array has one entry per window; windows end at `at` instances."""

    at: Ints
    cer: Floats
    """Share of wrong answers among all instances scored up to here; NaN before the first."""
    window_cer: Floats
    """Share of wrong answers within the window."""
    log_loss: Floats
    """Mean log loss of the instances up to here for which the learner gave probabilities; NaN before the first."""
    window_log_loss: Floats
    """Mean log loss within the window."""
    present: Floats
    """Mean number of features present in an instance of the window."""
    alive: Ints
    """Features present at least once within the window; every value of a string column is one."""
    columns: Ints
    """Columns present at least once within the window; a string column is one, whatever its values."""
    known: Ints
    """Features seen up to here."""
    importances: list[dict[Any, float]] = field(default_factory=list)
    """Importance by feature name, or by column (tracked by permutation), when tracked."""


@dataclass(frozen=True)
class LabelScores:
    """How one label was answered."""

    precision: float
    """Share of the answers with this label that were right; NaN without such an answer."""
    recall: float
    """Share of the instances of this label that got it as their answer; NaN without such an instance."""
    f1: float
    """Harmonic mean of the two; NaN where the label neither occurred nor was answered."""
    count: int
    """Instances of this label."""
    answered: int
    """Answers with this label."""


@dataclass(frozen=True)
class Result:
    """One prequential run.

    An answer of None counts as wrong. AUROC and AUPRC (average precision) are those of the positive label's
    probability, with more than two labels the mean of each label against the rest. They, log loss, Brier score and
    calibration error are over the instances whose true label the learner had learned before (it cannot answer others),
    and NaN for a learner that gives no probabilities. The Brier score of two labels is (p - y)^2, of more the sum over
    labels; the calibration error has 15 bins of the answer's probability.
    """

    cer: float
    accuracy: float
    f1: float
    balanced_accuracy: float
    auroc: float
    auprc: float
    log_loss: float
    brier: float
    calibration_error: float
    majority_cer: float
    """CER of answering the label learned most often so far."""
    majority_share: float
    """Share of the most frequent label among the instances scored."""
    instances: int
    scored: int
    scored_from: int
    unlabelled: int
    empty: int
    """Instances without any feature."""
    names: int
    """Feature names seen."""
    columns: int
    """Columns seen: as names, but all levels of a string column count once."""
    labels: list[Hashable]
    positive: Hashable | None
    """The label whose f1 is computed; None when f1 is the mean over labels."""
    confusion: Ints
    """Rows: true labels. Column 0: no answer, or none of the labels of the stream; column i + 1: label i."""
    curve: Curve
    seconds: float
    """Time spent in the learner."""
    us_per_instance: float
    peak_memory: int | None
    """Largest resident size of the process so far in bytes, where the system reports it."""
    periods: list[Period] = field(default_factory=list)
    """Metrics by period, when asked for."""
    importances: dict[Any, Importance] = field(default_factory=dict)
    """What the answers lose without each column, largest first, when tracked by permutation: over the last part."""
    predictions: Predictions | None = None
    """Every answer, when asked for."""
    sets: list[SetScores] = field(default_factory=list)
    """How sets of labels did, one entry per coverage of the learner."""

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance."""
        return cohens_kappa(self.confusion)

    def per_label(self) -> dict[Hashable, LabelScores]:
        """Precision, recall and F1 of every label."""
        hits = np.diagonal(self.confusion, offset=1).tolist()
        actual, answered = self.confusion.sum(axis=1).tolist(), self.confusion[:, 1:].sum(axis=0).tolist()
        return {
            label: LabelScores(
                precision=_ratio(hits[i], answered[i]),
                recall=_ratio(hits[i], actual[i]),
                f1=_ratio(2 * hits[i], actual[i] + answered[i]),
                count=actual[i],
                answered=answered[i],
            )
            for i, label in enumerate(self.labels)
        }

    @property
    def errors(self) -> int:
        """Wrong answers."""
        return self.scored - int(np.diagonal(self.confusion, offset=1).sum())

    @property
    def class_counts(self) -> dict[Hashable, int]:
        """Instances scored by true label."""
        return dict(zip(self.labels, self.confusion.sum(axis=1).tolist(), strict=True))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return METRICS

    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return {name: float(getattr(self, name)) for name in METRICS}

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {getattr(self, name):.4f}" for name in METRICS[:3])
        return f"{self.instances:,} instances, {self.names:,} features: {shown}"


@dataclass(frozen=True)
class Band:
    """The intervals of the largest coverage seen over time; every array has one entry per window, NaN without any."""

    low: Floats
    """Mean lower bound less the prediction."""
    high: Floats
    """Mean upper bound less the prediction."""
    covered: Floats
    """Share of the targets inside."""


@dataclass(frozen=True)
class RegressionCurve:
    """A run of a regressor seen over time; every array has one entry per window; windows end at `at` instances."""

    at: Ints
    mae: Floats
    """Mean absolute error of all instances scored up to here; NaN before the first."""
    window_mae: Floats
    """Mean absolute error within the window."""
    rmse: Floats
    """Root of the mean squared error of all instances scored up to here."""
    window_rmse: Floats
    """Root of the mean squared error within the window."""
    present: Floats
    """Mean number of features present in an instance of the window."""
    alive: Ints
    """Features present at least once within the window; every value of a string column is one."""
    columns: Ints
    """Columns present at least once within the window."""
    known: Ints
    """Features seen up to here."""
    importances: list[dict[Any, float]] = field(default_factory=list)
    """Importance by feature name, when tracked."""
    band: Band | None = None
    """The intervals, of a learner with coverages."""


@dataclass(frozen=True)
class RegressionResult:
    """One prequential run of a regressor.

    Instances before the first target was learned are not scored: there is nothing yet to predict from.
    """

    mae: float
    rmse: float
    r2: float
    """Share of the targets' variance that is predicted; below 0 where their mean would have been better."""
    mape: float
    """Mean of the absolute error over the target; NaN unless every target scored is positive."""
    pinball: float
    """Mean pinball loss of the `quantile`: an error above the prediction costs `quantile` of it, one below the rest."""
    mean_mae: float
    """Mean absolute error of predicting the mean of the targets learned so far."""
    quantile: float
    instances: int
    scored: int
    scored_from: int
    unlabelled: int
    empty: int
    """Instances without any feature."""
    names: int
    """Feature names seen."""
    columns: int
    """Columns seen: as names, but all levels of a string column count once."""
    lowest: float
    highest: float
    """Range of the targets scored."""
    curve: RegressionCurve
    seconds: float
    """Time spent in the learner."""
    us_per_instance: float
    peak_memory: int | None
    """Largest resident size of the process so far in bytes, where the system reports it."""
    periods: list[RegressionPeriod] = field(default_factory=list)
    """Metrics by period, when asked for."""
    importances: dict[Any, Importance] = field(default_factory=dict)
    """How much errors grow without each column, largest first, when tracked by permutation: over the last part."""
    predictions: RegressionPredictions | None = None
    """Every prediction, when asked for."""
    intervals: list[IntervalScores] = field(default_factory=list)
    """How intervals did, one entry per coverage of the learner."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return REGRESSION_METRICS

    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return {name: float(getattr(self, name)) for name in REGRESSION_METRICS}

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {getattr(self, name):.4g}" for name in REGRESSION_METRICS[:3])
        return f"{self.instances:,} instances, {self.names:,} features: {shown}"


@dataclass(frozen=True)
class Summary:
    """Several runs of one method: mean and standard deviation of every metric."""

    results: list[Any]
    """`Result` or `RegressionResult`, one per repeat."""
    seeds: list[int]
    learner: Any
    """The learner as the first repeat left it."""

    def values(self, metric: str) -> Floats:
        """A metric in every repeat."""
        return np.array([getattr(r, metric) for r in self.results], dtype=np.float64)

    def mean(self, metric: str) -> float:
        """Mean over the repeats."""
        return float(self.values(metric).mean())

    def std(self, metric: str) -> float:
        """Sample standard deviation over the repeats; 0 for a single one."""
        return float(self.values(metric).std(ddof=1)) if len(self.results) > 1 else 0.0

    def metrics(self) -> dict[str, dict[str, float]]:
        """Mean and standard deviation by metric."""
        return {name: {"mean": self.mean(name), "std": self.std(name)} for name in self.metric_names}

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the metrics of these runs."""
        return tuple(self.results[0].metric_names)

    @property
    def cer(self) -> float:
        """Mean cumulative error rate."""
        return self.mean("cer")

    @property
    def accuracy(self) -> float:
        """Mean accuracy."""
        return self.mean("accuracy")

    @property
    def f1(self) -> float:
        """Mean F1."""
        return self.mean("f1")

    def __str__(self) -> str:
        shown = (f"{name} {self.mean(name):.4f} ± {self.std(name):.4f}" for name in self.metric_names[:3])
        return f"{len(self.results)} repeats: " + ", ".join(shown)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def plain(number: float) -> float | None:
    """A number as JSON has it: None for NaN."""
    return None if math.isnan(number) else number
