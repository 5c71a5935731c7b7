"""ECOD and COPOD, written out: offline detectors from the tails of every column, fitted to all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from varifold.bench.peers.columns import Floats

__all__ = ["COPOD", "ECOD", "Offline", "filled"]


def filled(X: Floats) -> Floats:
    """Replace absent values by the means of their columns."""
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def _tails(X: Floats) -> tuple[Floats, Floats, Floats]:
    """Return minus the logarithms of both tails, and of the tail to which a column is skewed."""
    X = filled(X)
    n = len(X)
    left, right = np.empty_like(X), np.empty_like(X)
    for j, column in enumerate(X.T):
        values = np.sort(column)
        left[:, j] = -np.log(np.searchsorted(values, column, "right") / n)
        right[:, j] = -np.log((n - np.searchsorted(values, column, "left")) / n)
    centred = X - X.mean(axis=0)
    return left, right, np.where((centred**3).mean(axis=0) < 0, left, right)


class Offline(base.AnomalyDetector):
    """A detector that needs all rows at once: `score_all`."""

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Raise an error."""
        raise TypeError(f"{type(self).__name__} is offline: pass all rows to score_all()")

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Raise an error."""
        raise TypeError(f"{type(self).__name__} is offline: pass all rows to score_all()")


class ECOD(Offline):
    """Largest of the sums of left, right and skewed tails (Li et al. 2022)."""

    def score_all(self, X: Floats) -> Floats:
        """Fit to all rows, then score them."""
        scores: Floats = np.max([part.sum(axis=1) for part in _tails(X)], axis=0)
        return scores


class COPOD(Offline):
    """Sum over the columns of the larger of the mean of both tails and the skewed tail (Li et al. 2020)."""

    def score_all(self, X: Floats) -> Floats:
        """Fit to all rows, then score them."""
        left, right, skewed = _tails(X)
        scores: Floats = np.maximum((left + right) / 2, skewed).sum(axis=1)
        return scores
