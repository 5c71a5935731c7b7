"""Mean distance to the nearest of the last rows."""

from __future__ import annotations

import numpy as np

from tests.oracles.detection import column


class Neighbours:
    def __init__(self, k=20, window=300):
        self.k, self.window, self.rows, self.values = k, window, [], {}

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

    def score(self, x, slot):
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
            return 0.0
        far = sorted(
            sum((z[name] - row[name]) ** 2 if name in row else 2.0 for name in compared) / len(compared)
            for row in self.rows
        )[: self.k]
        return sum(far) / len(far)

    def learn(self, x, slot):
        z = self.scaled(x)
        for name, value in x.items():
            self.values.setdefault(name, []).append(value)
        self.rows = [*self.rows, z][-self.window :]
