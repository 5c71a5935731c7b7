"""Mahalanobis distance of latent scores, with full matrices."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.copula import PlainMarginal
from tests.oracles.detection import column


class Copula:
    def __init__(self, window=200):
        self.window, self.marginals, self.moment, self.pairs = window, {}, {}, {}

    def placed(self, x, slot):
        names = [name for name in sorted(x, key=slot.get) if column(name) is None]
        for name in names:
            self.marginals.setdefault(name, PlainMarginal(self.window, 14))
        return {name: self.marginals[name].place(x[name])[0] for name in names}

    def score(self, x, slot):
        z = {name: v for name, v in self.placed(x, slot).items() if self.pairs.get((name, name), 0) >= 2}
        names = list(z)
        n = len(names)
        if n == 0:
            return 0.0
        scale = np.array([self.moment[a, a] ** -0.5 if self.moment[a, a] > 1e-12 else 0.0 for a in names])
        R = np.zeros((n, n))
        for i, a in enumerate(names):
            for j, b in enumerate(names[:i]):
                both = self.pairs.get((a, b), 0)
                R[i, j] = R[j, i] = self.moment.get((a, b), 0.0) * scale[i] * scale[j] * both / (both + n + 5)
        np.fill_diagonal(R, 1.05)
        for i in range(1, n):  # shrink a row until the variance that the features before it leave is at least .04
            explained = R[i, :i] @ np.linalg.solve(R[:i, :i], R[i, :i])
            if 1.05 - explained < 0.04:
                R[i, :i] *= math.sqrt(1.01 / explained)
                R[:i, i] = R[i, :i]
        v = np.array(list(z.values())) * scale
        return (v @ np.linalg.solve(R, v) - n) / math.sqrt(2 * n)

    def learn(self, x, slot):
        z = self.placed(x, slot)
        for a in z:
            for b in z:
                if slot[b] <= slot[a]:
                    self.pairs[a, b] = self.pairs.get((a, b), 0) + 1
                    mean = self.moment.get((a, b), 0.0)
                    self.moment[a, b] = mean + (z[a] * z[b] - mean) * max(1 / self.pairs[a, b], 0.0002)
        for name in z:
            self.marginals[name].commit(x[name])
