"""AROW for regression from its equations: the weights of `PlainAROW`, updated by errors instead of hinge losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracles.arow import PlainAROW


class PlainAROWRegressor(PlainAROW):
    takes_order = True

    def learn(  # type: ignore[override]
        self,
        x: dict[Any, float],
        y: float,
        w: float,
        fresh: set[Any],
        mean: float,
        deviation: float,
        order: dict[Any, int],
    ) -> None:
        self.admit(x, order)
        v = self.vector(x)
        r = self.r / w
        u = self.sigma @ v
        self.mu = self.mu + (y - mean - self.mu @ v) / (v @ u + r) * u
        if self.full:
            self.sigma = self.sigma - np.outer(u, u) / (v @ u + r)
        else:
            self.sigma = np.diag(1 / (1 / np.diag(self.sigma) + v**2 / r))

    def weight(self, name: Any) -> float:
        return abs(super().weight(name))
