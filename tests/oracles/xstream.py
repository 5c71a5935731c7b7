"""Half-space chains, with cells in dicts."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.additive import MASK, mix
from tests.oracles.detection import draw, unit
from tests.oracles.projected import Projected


class XStream(Projected):
    def __init__(self, projections=50, chains=25, depth=10, window=250, cells=256, seed=0):
        super().__init__(projections, seed)
        self.chains, self.depth, self.window, self.cells, self.learned = chains, depth, window, cells, 0
        self.width, self.old_width = np.ones(projections), np.ones(projections)
        self.count, self.old_count, self.sketches = {}, {}, []

    def path(self, sketch, width, chain):
        """Return the cells of an instance, by level."""
        z, key, out = {}, chain, []
        for level in range(self.depth):
            k = draw(self.seed ^ 1, chain, level) % self.projections
            shift = unit(draw(self.seed ^ 2, chain, k))
            z[k] = 2 * z[k] - shift if k in z else sketch[k] / width[k] + shift
            key = mix(key ^ (math.floor(min(max(z[k], -1e9), 1e9)) & MASK))
            out.append((chain, level, key % self.cells))
        return out

    def score(self, x, slot):
        if self.learned == 0:
            return 0.0
        first = self.learned < self.window
        count, width = (self.count, self.width) if first else (self.old_count, self.old_width)
        sketch = [sum(terms) for terms in self.terms(x, slot)]
        least = [
            min(math.log2(1 + count.get(cell, 0)) + cell[1] + 1 for cell in self.path(sketch, width, chain))
            for chain in range(self.chains)
        ]
        return math.log2(1 + min(self.learned, self.window)) + 1 - sum(least) / self.chains

    def learn(self, x, slot):
        if self.learned and self.learned % self.window == 0:
            self.old_count, self.old_width, self.count = self.count, self.width, {}
            squares = np.square(self.sketches).mean(axis=0)
            self.width, self.sketches = np.maximum(2 * np.sqrt(squares), 1e-3), []
        fresh = {name for name in x if name not in self.scaler.values}
        sketch = [sum(terms) for terms in self.terms(x, slot, fresh)]
        self.sketches.append(sketch)
        for chain in range(self.chains):
            for cell in self.path(sketch, self.width, chain):
                self.count[cell] = self.count.get(cell, 0) + 1
        self.seen(x)
        self.learned += 1
