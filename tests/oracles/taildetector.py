"""Surprise of each value under its marginal, with plain lists."""

from __future__ import annotations

import math

from tests.oracles.detection import column


class Tail:
    def __init__(self, window=250):
        self.window, self.values, self.count, self.mean = window, {}, {}, {}

    def surprise(self, name, value):
        if not self.count.get(name):
            return None
        if column(name) is not None:
            return -math.log((self.count[name] + 1) / (self.count[column(name)] + 1))
        past = self.values[name]
        tail = min(sum(v <= value for v in past), sum(v >= value for v in past))
        middle = sorted(past)[len(past) // 2]
        edge = min(past) if value < min(past) else max(past) if value > max(past) else None
        beyond = 0.0
        if edge is not None and edge != middle:  # the tail falls with the square of the distance from the median
            beyond = min(2 * math.log(abs(value - middle) / abs(edge - middle)), 7)
        return beyond - math.log((tail + 1) / (len(past) + 1))

    def score(self, x, slot):
        parts = []
        for name in sorted(x, key=slot.get):
            s = self.surprise(name, x[name])
            if s is not None:
                parts.append(s - self.mean.get(column(name) or name, 0.0))
        return sum(parts) / math.sqrt(len(parts)) if parts else 0.0

    def learn(self, x, slot):
        for name in sorted(x, key=slot.get):
            s, owner = self.surprise(name, x[name]), column(name) or name
            self.count[name] = self.count.get(name, 0) + 1
            if column(name) is not None:
                self.count[owner] = self.count.get(owner, 0) + 1
            else:
                self.values[name] = [*self.values.get(name, []), x[name]][-self.window :]
            if s is not None:
                mean = self.mean.get(owner, 0.0)
                self.mean[owner] = mean + (s - mean) * max(1 / self.count[owner], 0.001)
