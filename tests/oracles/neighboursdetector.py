"""Mean distance to the nearest of the last rows, standardised by that of rows with about as many features."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.detection import column


class Neighbours:
    def __init__(self, k=20, window=300):
        self.k, self.window, self.rows, self.values = k, window, [], {}
        self.usual = {}  # by level, and of all: number, mean, variance

    def scaled(self, x):
        """Standardise each value by statistics that include it, within 8 deviations."""
        out = {}
        for name, value in x.items():
            past = np.array([*self.values.get(name, []), value])
            if column(name) is None:
                sd = past.std()
                ok = sd > 1e-12 * max(1.0, abs(past.mean()))
                value = float(np.clip((value - past.mean()) / sd, -8, 8)) if ok else 0.0
            out[name] = value
        return out

    def distance(self, x):
        """Return the mean distance of the k nearest and the number of compared features."""
        z = self.scaled(x)
        strings = [{column(name) for name in row} for row in self.rows]
        shares = {
            name: sum(
                column(name) in held if column(name) else name in row
                for row, held in zip(self.rows, strings, strict=True)
            )
            for name in z
        }
        compared = [name for name in z if name in self.values and shares[name] > 0.1 * len(self.rows)]
        if not compared:
            return 0.0, 0
        far = sorted(
            sum((z[name] - row[name]) ** 2 if name in row else 2.0 for name in compared) / len(compared)
            for row in self.rows
        )[: self.k]
        return sum(far) / len(far), len(compared)

    def score(self, x, slot):
        distance, compared = self.distance(x)
        if not compared:
            return 0.0
        n, mean, variance = self.usual.get("all", (0, 0.0, 0.0))
        k, of_level, spread = self.usual.get(level(compared), (0, 0.0, 0.0))
        share = k / (k + 5)
        deviation = math.sqrt((1 - share) * variance + share * spread + 1 / (n + 1))
        return (distance - (1 - share) * mean - share * of_level) / deviation

    def learn(self, x, slot):
        distance, compared = self.distance(x)
        for key in ("all", level(compared)) if compared else ():
            n, mean, variance = self.usual.get(key, (0, 0.0, 0.0))
            rate = max(1 / (n + 1), 0.001)
            step = distance - mean
            self.usual[key] = n + 1, mean + rate * step, (1 - rate) * (variance + rate * step**2)
        z = self.scaled(x)
        for name, value in x.items():
            self.values.setdefault(name, []).append(value)
        self.rows = [*self.rows, z][-self.window :]


def level(n):
    """Return the class of a number of features: one each up to 8, then four by doubling."""
    return n if n <= 8 else 8 + math.floor(4 * math.log2(n / 8))
