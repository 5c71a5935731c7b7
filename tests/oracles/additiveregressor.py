"""Additive regression from its definition: AROW regression on an explicit vector of bin indicators and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracles.additive import Feature
from tests.oracles.harness import ONE, RegressionSurroundings

Pairs = dict[Any, tuple[float, float]]
"""Raw and scaled value by name."""


class AdditiveSurroundings(RegressionSurroundings):
    """Passes the raw values to the rule in addition to the scaled ones."""

    def presented(self, found: Any, w: float, commit: bool) -> Any:
        scaled = super().presented(found, w, commit)
        return {name: (found[name][0] if name in found else 1.0, value) for name, value in scaled.items()}


class PlainAdditiveRegressor:
    takes_order = True

    def __init__(self, r: float, max_binned: int, memory: float) -> None:
        self.r, self.max_binned, self.ceiling = r, max_binned, memory / r if memory else np.inf
        self.features: dict[Any, Feature] = {}
        self.mean: dict[Any, float] = {}
        self.precision: dict[Any, float] = {}

    def vector(self, x: Pairs) -> dict[Any, float]:
        phi: dict[Any, float] = {}
        for name, (raw, z) in x.items():
            phi[name, "value"] = z
            known = self.features.get(name)
            b = None if known is None else known.bin(raw)
            if b is not None:
                phi[name, b] = 1.0
        return phi

    def score(self, x: Pairs) -> float:
        return sum(self.mean.get(k, 0.0) * v for k, v in self.vector(x).items())

    def learn(
        self, x: Pairs, y: float, w: float, fresh: set[Any], mean: float, deviation: float, order: dict[Any, int]
    ) -> None:
        for name, (raw, _) in x.items():
            if name != ONE and order[name] < self.max_binned and not (isinstance(name, str) and "=" in name):
                self.features.setdefault(name, Feature(order[name])).absorb(raw)
        phi = self.vector(x)
        variance = {k: 1.0 / (1.0 + self.precision.get(k, 0.0)) for k in phi}
        r = self.r / w
        error = y - mean - sum(self.mean.get(k, 0.0) * v for k, v in phi.items())
        beta = 1.0 / (sum(v * v * variance[k] for k, v in phi.items()) + r)
        for k, v in phi.items():
            self.mean[k] = self.mean.get(k, 0.0) + beta * error * variance[k] * v
            self.precision[k] = min(self.precision.get(k, 0.0) + v * v / r, self.ceiling)

    def forget(self, name: Any) -> None:
        self.features.pop(name, None)
        for held in (self.mean, self.precision):
            for key in [k for k in held if k[0] == name]:
                del held[key]

    def weight(self, name: Any) -> float:
        bins = [0.0, *(m for (n, part), m in self.mean.items() if n == name and part != "value")]
        return abs(self.mean.get((name, "value"), 0.0)) + max(bins) - min(bins)
