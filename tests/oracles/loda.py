"""Histograms of random projections."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.projected import Projected


class LODA(Projected):
    def __init__(self, projections=50, seed=0):
        super().__init__(projections, seed)
        self.mass, self.total = np.zeros((projections, 66)), np.zeros(projections)

    def bins(self, x, slot, fresh=()):
        out = []
        for terms in self.terms(x, slot, fresh):
            z = math.floor(4 * sum(terms) / math.sqrt(len(terms))) if terms else None
            out.append(None if z is None else 0 if z < -32 else 65 if z >= 32 else z + 33)
        return out

    def score(self, x, slot):
        parts = [
            -math.log((self.mass[k, b] + 0.5) / (self.total[k] + 33))
            for k, b in enumerate(self.bins(x, slot))
            if b is not None and self.total[k] > 0
        ]
        return sum(parts) / len(parts) if parts else 0.0

    def learn(self, x, slot):
        fresh = {name for name in x if name not in self.scaler.values}
        for k, b in enumerate(self.bins(x, slot, fresh)):
            if b is not None:
                self.mass[k] *= 0.9995
                self.mass[k, b] += 1
                self.total[k] = 0.9995 * self.total[k] + 1
        self.seen(x)
