"""Estimate the error and the calibration of a classifier from the instances whose labels were requested."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from varifold.base.plural import plural

__all__ = ["ErrorEstimator", "Estimate"]

_BINS = 10


@dataclass(frozen=True)
class Estimate:
    """Error and calibration among all instances, estimated from those that got a label.

    `labels` counts the labels behind it; `plain` is the error among those alone, which is biased: labels are requested
    where the classifier is unsure. Two standard errors around `error` contain the true one in about 95 % of all cases,
    also with few labels. `confidence` is the mean probability that the classifier gave its predictions; it
    should equal 1 - `error`. `calibration_error` is the mean distance between probability and accuracy over ten bins of
    the probability; few labels make it too large. What is unknown is NaN.
    """

    error: float
    standard_error: float
    labels: int
    plain: float
    confidence: float
    calibration_error: float

    def __str__(self) -> str:
        if not self.labels:
            return "no requested label has arrived, so the error is unknown"
        labels = plural(self.labels, "requested label")
        # 0 only while every outcome was certain to be requested, which says nothing about the rows to come
        spread = f"± {self.standard_error:.1%}" if self.standard_error else "(uncertainty not yet known)"
        text = (
            f"error {self.error:.1%} {spread}, estimated from {labels}"
            f" weighted by the inverse of their chances (unweighted {self.plain:.1%}, which is biased)"
        )
        if math.isnan(self.confidence):
            return text
        return f"{text}; predictions claim {self.confidence:.1%} on average and {1.0 - self.error:.1%} are right"


class ErrorEstimator:
    """Sums over outcomes that were drawn with known chances: each counts by the inverse of its chance."""

    def __init__(self) -> None:
        self.count = 0
        self.wrong = 0
        self.weight = 0.0
        self.total = 0.0
        self.weight_variance = 0.0  # sums of w (w - 1), the variance of w if the outcome is drawn with the chance 1 / w
        self.total_variance = 0.0
        self.confident = [0.0] * _BINS  # by bin: weight, weight of the right ones, weighted probability
        self.right = [0.0] * _BINS
        self.claimed = [0.0] * _BINS

    def add(self, right: bool, chance: float, confidence: float | None = None) -> None:
        """Add the outcome of a prediction whose label was requested with this chance."""
        w = 1.0 / chance
        self.count += 1
        self.weight += w
        self.weight_variance += w * (w - 1.0)
        if not right:
            self.wrong += 1
            self.total += w
            self.total_variance += w * (w - 1.0)
        if confidence is not None:
            at = min(_BINS - 1, int(confidence * _BINS))
            self.confident[at] += w
            self.claimed[at] += w * confidence
            self.right[at] += w * right

    def estimate(self) -> Estimate:
        """Return the weighted means and the standard error of the error.

        The standard error is that of a ratio of two weighted sums (Hájek): an outcome of weight w adds w (w - 1) times
        its squared distance from the mean, so that labels requested for certain add nothing. One right and one wrong
        outcome of typical weight join the sums before. Without them it would be 0 while all outcomes are equal, and too
        small whenever chance has left out the few wrong ones. As few draws also know their spread badly, the variance
        is multiplied by n / (n - 3), that of Student's t, where n is the number of typical weights in the draws.
        """
        if not self.count:
            return Estimate(math.nan, math.nan, 0, math.nan, math.nan, math.nan)
        mean = self.total / self.weight
        drawn = self.weight - self.count
        typical = self.weight_variance / drawn if drawn > 0.0 else 0.0
        weight = self.weight + 2.0 * typical
        centre = (self.total + typical) / weight
        # sum of w (w - 1) (value - centre)^2 for values 0 and 1
        spread = (self.total_variance + typical**2) * (1.0 - 2.0 * centre)
        spread += (self.weight_variance + 2.0 * typical**2) * centre**2
        if typical > 0.0:
            n = drawn / typical + 2.0
            spread *= n / max(1.0, n - 3.0)
        known = sum(self.confident)
        gaps = sum(abs(c - r) for c, r in zip(self.claimed, self.right, strict=True))
        return Estimate(
            error=mean,
            standard_error=math.sqrt(max(0.0, spread)) / weight,
            labels=self.count,
            plain=self.wrong / self.count,
            confidence=sum(self.claimed) / known if known else math.nan,
            calibration_error=gaps / known if known else math.nan,
        )

    def dump(self) -> dict[str, Any]:
        """Return the sums as JSON."""
        return vars(self).copy()

    def fill(self, state: dict[str, Any]) -> None:
        """Restore what dump() returned."""
        vars(self).update(state)
