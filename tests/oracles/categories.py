"""Levels of a wide string column, and the statistic that replaces the rare ones, in plain Python."""

import math

WIDE = 32


class Levels:
    """Class counts by level of one column, for two labels that are known from the start."""

    def __init__(self, labels, smoothing=10.0):
        self.labels, self.smoothing = labels, smoothing
        self.counts = {}
        self.spread = 0.0

    def column(self):
        return [sum(counts[c] for counts in self.counts.values()) for c in range(len(self.labels))]

    def is_wide(self):
        return len(self.counts) > WIDE

    def is_frequent(self, level):
        n = sum(self.counts.get(level, [0]))
        return n >= 5 and WIDE * n >= sum(self.column())

    def lifts(self, level):
        """Return the lifts by label; None for a level never learned."""
        if level not in self.counts:
            return None
        column, own, k = self.column(), self.counts[level], len(self.labels)
        shares = [(n + 0.5) / (sum(column) + 0.5 * k) for n in column]
        return [
            math.log((own[c] + self.smoothing * p) / ((sum(own) + self.smoothing) * p)) for c, p in enumerate(shares)
        ]

    def statistic(self, level):
        first, second = self.lifts(level)
        return second - first

    def value(self, level):
        """Return the statistic of a level that is not frequent; None for one never learned."""
        if level not in self.counts:
            return None
        return max(-3.0, min(3.0, self.statistic(level) / math.sqrt(self.spread + 1e-4)))

    def learn(self, level, y):
        if self.is_wide() and level in self.counts:
            self.spread += (self.statistic(level) ** 2 - self.spread) / min(max(sum(self.column()), 1), 1000)
        self.counts.setdefault(level, [0] * len(self.labels))[y] += 1
