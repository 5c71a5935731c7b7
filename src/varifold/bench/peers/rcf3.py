"""Detector of rcf3 for features that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from river import base

from varifold.bench.peers.columns import needs

__all__ = ["FeatureSketch"]


class FeatureSketch(base.AnomalyDetector):
    """Counts of values by name in a sketch, compared with their expectation."""

    def __init__(self) -> None:
        needs("rcf3", self)
        import rcf3

        self.model = rcf3.FeatureSketch(seed=1)

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance."""
        self.model.update(dict(x))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the anomaly score."""
        return float(self.model.score(dict(x)))
