"""Detector of pysad: features by position, so that every column must be known in advance and filled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from river import base

from varifold.bench.peers.columns import Arrays, Means, needs

__all__ = ["XStream"]


class XStream(base.AnomalyDetector):
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

    @cached_property
    def arrays(self) -> Arrays:
        """Columns of the stream; read on first use."""
        return Arrays(self.data)

    @cached_property
    def means(self) -> Means:
        """Means so far."""
        return Means(self.arrays)

    def _scaled(self, x: Mapping[Any, Any]) -> Any:
        return self.means.scaled(self.means.filled(self.arrays.row(x)))

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance."""
        self.means.learn(self.arrays.row(x))
        self.model.fit_partial(self._scaled(x))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the anomaly score; 0 before the first instance."""
        return float(self.model.score_partial(self._scaled(x))) if self.means.counts.any() else 0.0
