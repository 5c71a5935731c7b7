"""Detector of pysad: features by position, so that every column must be known in advance and filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from river import base

from varifold.bench.peers.columns import InAdvance, needs

__all__ = ["XStream"]


class XStream(InAdvance, base.AnomalyDetector):
    """Half-space chains over standardised values; absent ones are the mean so far.

    Parameters
    ----------
    data
        Name of the data set, for its columns.

    """

    def __init__(self, data: str) -> None:
        needs("pysad", self)
        from pysad.models import xStream

        self.data = data
        self.model = xStream()

    def _scaled(self, x: Mapping[Any, Any]) -> Any:
        return self.filler.scaled(self.filler.filled(self.arrays.row(x)))

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance."""
        self.filler.learn(self.arrays.row(x))
        self.model.fit_partial(self._scaled(x))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the anomaly score; 0 before the first instance."""
        return float(self.model.score_partial(self._scaled(x))) if self.filler.counts.any() else 0.0
