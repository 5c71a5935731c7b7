"""Projections of standardised values, which LODA and xStream share."""

from __future__ import annotations

from tests.oracles.detection import draw
from tests.oracles.neighboursdetector import Neighbours


class Projected:
    """Projections of standardised values with weights -1, 0 and 1."""

    def __init__(self, projections, seed):
        self.projections, self.seed, self.scaler = projections, seed, Neighbours()

    def terms(self, x, slot, fresh=()):
        """Return by projection the values that it sums, with their signs."""
        z = self.scaler.scaled(x)
        sign = {0: 1.0, 1: -1.0}
        return [
            [sign[r] * z[f] for f in x if f not in fresh and (r := draw(self.seed, k, slot[f]) % 6) < 2]
            for k in range(self.projections)
        ]

    def seen(self, x):
        """Add an instance to the statistics; return its features that are new."""
        fresh = {name for name in x if name not in self.scaler.values}
        for name, value in x.items():
            self.scaler.values.setdefault(name, []).append(value)
        return fresh
