"""Estimate the error of a classifier from the instances whose labels were requested."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Estimate", "WeightedMean"]


@dataclass(frozen=True)
class Estimate:
    """The error among all instances, estimated from those that got a label.

    `labels` counts the labels behind it; `plain` is the error among those alone, which is biased: labels are requested
    where the classifier is unsure.
    """

    error: float
    standard_error: float
    labels: int
    plain: float


class WeightedMean:
    """Mean of values that were drawn with known probabilities: each counts by the inverse of its probability."""

    def __init__(self) -> None:
        self.count = 0
        self.weight = 0.0
        self.total = 0.0
        self.weight_squares = 0.0
        self.total_products = 0.0
        self.total_squares = 0.0
        self.plain = 0.0

    def add(self, value: float, probability: float) -> None:
        """Add a value that was drawn with this probability."""
        w = 1.0 / probability
        self.count += 1
        self.plain += value
        self.weight += w
        self.total += w * value
        self.weight_squares += w * w
        self.total_products += w * w * value
        self.total_squares += w * w * value * value

    def estimate(self) -> Estimate:
        """Return the mean and its standard error, that of a ratio of two weighted sums; NaN without a value."""
        if not self.count:
            return Estimate(math.nan, math.nan, 0, math.nan)
        mean = self.total / self.weight
        # sum of w^2 (value - mean)^2
        spread = self.total_squares - 2.0 * mean * self.total_products + mean * mean * self.weight_squares
        return Estimate(mean, math.sqrt(max(0.0, spread)) / self.weight, self.count, self.plain / self.count)
