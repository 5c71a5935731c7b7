"""Parts of the oracles of anomaly detectors: names, draws, recent scores, p-values.

An oracle has ``score(x, slot)`` and ``learn(x, slot)``; x maps names to values, the string value v of a column f as
``f=v``. `slot` maps known names to their slots: sums, rows and random choices are in the order of slots.
"""

from __future__ import annotations

from tests.oracles.additive import mix


def column(name):
    """Return the column of an indicator `f=v`, None for the name of a number."""
    return name.partition("=")[0] if isinstance(name, str) and "=" in name else None


class RecentScores:
    def __init__(self, most=1000):
        self.most, self.scores = most, []

    def beyond(self, score):
        larger = sum(s > score for s in self.scores) + 0.5 * sum(s == score for s in self.scores)
        return (larger + 0.5) / (len(self.scores) + 1)

    def keep(self, score):
        self.scores = [*self.scores, score][-self.most :]

    def creep(self):
        """Return whether ten of the last hundred of at least 500 scores were above all before them."""
        n = len(self.scores)
        return n >= 500 and sum(self.scores[i] > max(self.scores[:i]) for i in range(n - 100, n)) >= 10


class Alarms:
    """P-values: the smallest rate whose level is at least the conformal p-value, interpolated."""

    rates = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

    def __init__(self):
        self.recent, self.levels = RecentScores(), list(self.rates)

    def p_value(self, score):
        scores = self.recent.scores
        if not scores:
            return 1.0
        share = (sum(s >= score for s in scores) + 1) / (len(scores) + 1)
        xs, ys = [0.0], [0.0]
        for rate, level in zip(self.rates, self.levels, strict=True):
            if share <= level:
                return ys[-1] + (rate - ys[-1]) * (share - xs[-1]) / (level - xs[-1])
            xs.append(max(xs[-1], level))
            ys.append(rate)
        return ys[-1] + (1 - ys[-1]) * (share - xs[-1]) / (1 - xs[-1]) if xs[-1] < share < 1 else 1.0

    def observe(self, score):
        scores = self.recent.scores
        if scores:
            p = self.p_value(score)
            larger = sum(s > score for s in scores) / (len(scores) + 1)
            equal = sum(s == score for s in scores)
            highest = 0.0
            lowest = min(0.002, 1 / (min(len(scores) + 1, self.recent.most) + 1))
            for j, rate in enumerate(self.rates):
                highest = max(highest, self.levels[j])
                alarm = float(p <= rate)
                if equal and p > rate:  # a part of the equal scores is within the level
                    alarm = max(highest - larger, 0.0) / ((equal + 1) / (len(scores) + 1))
                self.levels[j] += rate / 5 * (rate - alarm)
                free = rate < 0.005 or self.levels[j] >= lowest or self.recent.creep()
                self.levels[j] = min(max(self.levels[j], -1.0 if free else lowest), 0.5)
        self.recent.keep(score)


def draw(seed, a, b):
    return mix(mix(mix(seed) ^ a) ^ b)


def unit(z):
    return (z >> 11) / 2**53
