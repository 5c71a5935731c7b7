"""Metrics of regressors from a few sums, so that nothing is kept per instance."""

from __future__ import annotations

import math

import numpy as np

from varifold.evaluate.metrics import Floats, Ints

REGRESSION_METRICS = ("mae", "rmse", "r2", "mape", "pinball", "mean_mae", "us_per_instance")
"""Names of the metrics of regressors that are averaged over repeats."""


class RegressionTally:
    """Sums over the errors of the instances scored so far, and over their targets."""

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile
        self.scored = 0
        self.absolute = 0.0
        self.squared = 0.0
        self.relative = 0.0
        self.pinball = 0.0
        self.by_mean = 0.0
        self.mean = 0.0
        self.spread = 0.0  # sum of squared deviations of the targets from their mean
        self.lowest, self.highest = math.inf, -math.inf

    def add(self, truth: Floats, predicted: Floats, mean: Floats) -> None:
        """Add targets, predictions, and the predictions of the running mean of the targets."""
        if not len(truth):
            return
        errors = truth - predicted
        self.absolute += float(np.abs(errors).sum())
        self.squared += float(np.square(errors).sum())
        self.pinball += float(np.maximum(self.quantile * errors, (self.quantile - 1.0) * errors).sum())
        self.by_mean += float(np.abs(truth - mean).sum())
        self.lowest, self.highest = min(self.lowest, float(truth.min())), max(self.highest, float(truth.max()))
        if self.lowest > 0.0:
            self.relative += float((np.abs(errors) / truth).sum())
        self._spread(truth)

    def _spread(self, truth: Floats) -> None:
        """Update the mean of the targets and the squared deviations from it."""
        mean, count = float(truth.mean()), len(truth)
        total = self.scored + count
        self.spread += float(np.square(truth - mean).sum()) + (mean - self.mean) ** 2 * self.scored * count / total
        self.mean += (mean - self.mean) * count / total
        self.scored = total

    def scores(self) -> dict[str, float]:
        """Return all metrics; MAPE is NaN unless every target was positive."""
        if not self.scored:
            return dict.fromkeys(REGRESSION_METRICS[:-1], float("nan"))
        return {
            "mae": self.absolute / self.scored,
            "rmse": math.sqrt(self.squared / self.scored),
            "r2": 1.0 - self.squared / self.spread if self.spread > 0.0 else float("nan"),
            "mape": self.relative / self.scored if self.lowest > 0.0 else float("nan"),
            "pinball": self.pinball / self.scored,
            "mean_mae": self.by_mean / self.scored,
        }


class RunningMean:
    """Mean of the targets learned so far: the prediction of a learner that ignores every feature."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def predict(self, learned: Floats, before: Ints) -> Floats:
        """Predict when `before` of the targets `learned` have arrived; 0 before any."""
        totals = self.total + np.concatenate([[0.0], np.cumsum(learned)])
        counts = self.count + np.arange(len(learned) + 1)
        self.total, self.count = float(totals[-1]), int(counts[-1])
        return np.asarray(totals / np.maximum(counts, 1))[before]
