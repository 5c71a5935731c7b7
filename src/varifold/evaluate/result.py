"""Results of evaluations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from varifold.ask.estimate import Estimate
from varifold.base.importances import Importance
from varifold.base.plural import plural
from varifold.evaluate.metrics import METRICS, Floats, Ints, cohens_kappa, ratio
from varifold.evaluate.periods import Period, RegressionPeriod
from varifold.evaluate.predictions import Predictions, RegressionPredictions
from varifold.evaluate.regression_metrics import REGRESSION_METRICS
from varifold.evaluate.uncertainty import IntervalScores, SetScores


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """Features of a run over time; every array has one entry per window; windows end at `at` instances."""

    at: Ints
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


@dataclass(frozen=True, kw_only=True)
class Curve(_Curve):
    """A classifier's run over time; every array has one entry per window; windows end at `at` instances."""

    cer: Floats
    """Share of wrong predictions among all instances scored up to here; NaN before the first."""
    window_cer: Floats
    """Share of wrong predictions within the window."""
    log_loss: Floats
    """Mean log loss of the instances up to here for which the learner had probabilities; NaN before the first."""
    window_log_loss: Floats
    """Mean log loss within the window."""
    square: Floats
    """Mean of (1 - p)² so far, p the probability of the true label (the loss of OVFIV's figures)."""
    hinge: Floats
    """Mean of max(0, 1 - f) so far, f the log-odds of the true label: a margin learner's margin (CWFE's figures)."""


@dataclass(frozen=True, kw_only=True)
class RegressionCurve(_Curve):
    """A regressor's run over time; every array has one entry per window; windows end at `at` instances."""

    mae: Floats
    """Mean absolute error of all instances scored up to here; NaN before the first."""
    window_mae: Floats
    """Mean absolute error within the window."""
    rmse: Floats
    """Root of the mean squared error of all instances scored up to here."""
    window_rmse: Floats
    """Root of the mean squared error within the window."""
    band: Band | None = None
    """Intervals, of a learner with coverages."""


@dataclass(frozen=True)
class LabelScores:
    """How well one label was predicted."""

    precision: float
    """Share of the predictions of this label that were right; NaN without such a prediction."""
    recall: float
    """Share of the instances of this label that were predicted as such; NaN without such an instance."""
    f1: float
    """Harmonic mean of the two; NaN if the label neither occurred nor was predicted."""
    count: int
    """Instances of this label."""
    predicted: int
    """Predictions of this label."""


@dataclass(frozen=True, kw_only=True)
class _Result:
    """Common fields of the results of classifiers and regressors."""

    instances: int
    scored: int
    scored_from: int
    unlabelled: int
    empty: int
    """Instances without any feature."""
    names: int
    """Feature names seen."""
    columns: int
    """Columns seen: like `names`, but all levels of a string column count once."""
    seconds: float
    """Time spent in the learner."""
    us_per_instance: float
    peak_memory: int | None
    """Largest resident size of the process so far in bytes, if the system reports it."""
    importances: dict[Any, Importance] = field(default_factory=dict)
    """Loss of accuracy without each column, largest first, when tracked by permutation: over the last part."""

    _METRICS: ClassVar[tuple[str, ...]]
    _FORMAT: ClassVar[str]

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the metrics."""
        return self._METRICS

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name."""
        return {name: float(getattr(self, name)) for name in self._METRICS}

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {getattr(self, name):{self._FORMAT}}" for name in self._METRICS[:3])
        return f"{plural(self.instances, 'instance')}, {plural(self.names, 'feature')}: {shown}"


@dataclass(frozen=True, kw_only=True)
class Result(_Result):
    """One prequential run of a classifier.

    A prediction of None counts as wrong. AUROC and AUPRC (average precision) are those of the positive label's
    probability, with more than two labels the mean of each label against the rest. They, log loss, Brier score and
    calibration error are over the instances whose true label the learner had learned before (it cannot predict others),
    and NaN for a learner without probabilities. The Brier score of two labels is (p - y)^2, of more the sum over
    labels; the calibration error has 15 bins of the predicted label's probability.
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
    """CER of predicting the label learned most often so far."""
    majority_share: float
    """Share of the most frequent label among the instances scored."""
    labels: list[Hashable]
    positive: Hashable | None
    """Label whose f1 is computed; None if f1 is the mean over labels."""
    confusion: Ints
    """Rows: true labels. Column 0: no prediction, or none of the labels of the stream; column i + 1: label i."""
    curve: Curve
    periods: list[Period] = field(default_factory=list)
    """Metrics by period, if requested."""
    predictions: Predictions | None = None
    """Every prediction, if requested."""
    sets: list[SetScores] = field(default_factory=list)
    """Scores of the sets of labels, one entry per coverage of the learner."""
    requested: Estimate | None = None
    """With `ask`: the number of labels requested, and error and calibration estimated from them alone."""

    _METRICS: ClassVar[tuple[str, ...]] = METRICS
    _FORMAT: ClassVar[str] = ".4f"

    @property
    def kappa(self) -> float:
        """Return Cohen's kappa: agreement beyond chance."""
        return cohens_kappa(self.confusion)

    def per_label(self) -> dict[Hashable, LabelScores]:
        """Return precision, recall and F1 of every label."""
        hits = np.diagonal(self.confusion, offset=1).tolist()
        actual, predicted = self.confusion.sum(axis=1).tolist(), self.confusion[:, 1:].sum(axis=0).tolist()
        return {
            label: LabelScores(
                precision=ratio(hits[i], predicted[i]),
                recall=ratio(hits[i], actual[i]),
                f1=ratio(2 * hits[i], actual[i] + predicted[i]),
                count=actual[i],
                predicted=predicted[i],
            )
            for i, label in enumerate(self.labels)
        }

    def cost(self, costs: Mapping[Hashable, float]) -> float:
        """Return the mean cost of an instance: that of missing its label, 1 for labels without one, 0 if right."""
        missed = self.confusion.sum(axis=1) - np.diagonal(self.confusion, offset=1)
        return ratio(float(missed @ self._costs(costs)), self.scored)

    def constant_cost(self, costs: Mapping[Hashable, float]) -> tuple[Hashable, float]:
        """Return the label that would be cheapest to predict every time, and its mean cost of an instance."""
        by_label = self.confusion.sum(axis=1) * self._costs(costs)
        best = int(np.argmax(by_label))
        return self.labels[best], ratio(float(by_label.sum() - by_label[best]), self.scored)

    def _costs(self, costs: Mapping[Hashable, float]) -> Floats:
        return np.array([costs.get(label, 1.0) for label in self.labels], dtype=np.float64)

    @property
    def errors(self) -> int:
        """Return the number of wrong predictions."""
        return self.scored - int(np.diagonal(self.confusion, offset=1).sum())


@dataclass(frozen=True)
class Band:
    """Intervals of the largest coverage over time; every array has one entry per window, NaN without any."""

    low: Floats
    """Mean lower bound less the prediction."""
    high: Floats
    """Mean upper bound less the prediction."""
    covered: Floats
    """Share of the targets inside."""


@dataclass(frozen=True, kw_only=True)
class RegressionResult(_Result):
    """One prequential run of a regressor.

    Instances before the first target was learned are not scored: there is nothing yet to predict from.
    """

    mae: float
    rmse: float
    r2: float
    """Share of the targets' variance that is predicted; below 0 if their mean would have been better."""
    mape: float
    """Mean of the absolute error over the target; NaN unless every target scored is positive."""
    pinball: float
    """Mean pinball loss of the `quantile`: an error above the prediction costs `quantile` of it, one below the rest."""
    mean_mae: float
    """Mean absolute error of predicting the mean of the targets learned so far."""
    quantile: float
    lowest: float
    highest: float
    """Range of the targets scored."""
    curve: RegressionCurve
    periods: list[RegressionPeriod] = field(default_factory=list)
    """Metrics by period, if requested."""
    predictions: RegressionPredictions | None = None
    """Every prediction, if requested."""
    intervals: list[IntervalScores] = field(default_factory=list)
    """Scores of the intervals, one entry per coverage of the learner."""

    _METRICS: ClassVar[tuple[str, ...]] = REGRESSION_METRICS
    _FORMAT: ClassVar[str] = ".4g"


@dataclass(frozen=True)
class Summary:
    """Several runs of one method: mean and standard deviation of every metric."""

    results: list[Any]
    """`Result` or `RegressionResult`, one per repeat."""
    seeds: list[int]
    learner: Any
    """Learner after the first repeat."""

    def values(self, metric: str) -> Floats:
        """Return a metric of every repeat."""
        return np.array([getattr(r, metric) for r in self.results], dtype=np.float64)

    def mean(self, metric: str) -> float:
        """Return the mean over the repeats."""
        return float(self.values(metric).mean())

    def std(self, metric: str) -> float:
        """Return the sample standard deviation over the repeats; 0 for a single one."""
        return float(self.values(metric).std(ddof=1)) if len(self.results) > 1 else 0.0

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return mean and standard deviation by metric."""
        return {name: {"mean": self.mean(name), "std": self.std(name)} for name in self.metric_names}

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the metrics of these runs."""
        return tuple(self.results[0].metric_names)

    @property
    def cer(self) -> float:
        """Return the mean cumulative error rate."""
        return self.mean("cer")

    @property
    def accuracy(self) -> float:
        """Return the mean accuracy."""
        return self.mean("accuracy")

    @property
    def f1(self) -> float:
        """Return the mean F1."""
        return self.mean("f1")

    def __str__(self) -> str:
        shown = (f"{name} {self.mean(name):.4f} ± {self.std(name):.4f}" for name in self.metric_names[:3])
        return f"{plural(len(self.results), 'repeat')}: " + ", ".join(shown)


def plain(number: float) -> float | None:
    """Convert a number for JSON: None for NaN."""
    return None if math.isnan(number) else number
