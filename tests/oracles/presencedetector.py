"""Surprise of the set of columns that are present."""

from __future__ import annotations

import math

from tests.oracles.detection import column


class Presence:
    def __init__(self, forget=0.01):
        self.forget, self.count, self.rate = forget, {}, {}

    def score(self, x, slot):
        here = {column(name) or name for name in x}
        total, variance = 0.0, 1.0
        for name in self.count:
            r = min(max(self.rate[name], 1e-4), 1 - 1e-4)
            surprise = {True: -math.log(r), False: -math.log(1 - r)}
            mean = r * surprise[True] + (1 - r) * surprise[False]
            total += surprise[name in here] - mean
            variance += r * (surprise[True] - mean) ** 2 + (1 - r) * (surprise[False] - mean) ** 2
        return total / math.sqrt(variance)

    def learn(self, x, slot):
        here = {column(name) or name for name in x}
        for name in here | set(self.count):
            self.count[name] = self.count.get(name, 0) + 1
            rate = self.rate.get(name, 0.5)
            self.rate[name] = rate + ((name in here) - rate) * max(1 / (self.count[name] + 1), self.forget)
