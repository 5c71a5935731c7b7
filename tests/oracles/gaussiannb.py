"""Naive Bayes from lists of the values seen: weighted means, variances and shares, recomputed every time."""

import math

import numpy as np


class PlainGaussianNB:
    def __init__(self, prior, intercept=True):
        self.prior, self.intercept = prior, intercept
        self.labels, self.counts = [], {}
        self.seen = []

    def learn(self, x, y, w):
        if y not in self.labels:
            self.labels.append(y)
        if x:
            self.counts[y] = self.counts.get(y, 0.0) + w
            self.seen.append((x, y, w))

    def values(self, name, y=None):
        found = [
            (x[name], w)
            for x, label, w in self.seen
            if name in x and not isinstance(x[name], str) and y in (None, label)
        ]
        return np.array(found).reshape(-1, 2)

    def scores(self, x):
        total = sum(self.counts.values()) + self.prior * len(self.labels)
        return {
            y: (math.log((self.counts.get(y, 0.0) + self.prior) / total) if self.intercept else 0.0)
            + sum(self.evidence(name, value, y) for name, value in x.items())
            for y in self.labels
        }

    def evidence(self, name, value, y):
        found = self.level(name, value, y) if isinstance(value, str) else self.number(name, value, y)
        return float(np.clip(found, -50, 50))

    def level(self, name, value, y):
        def weight(level=None, label=None):
            return sum(w for x, of, w in self.seen if name in x and level in (None, x[name]) and label in (None, of))

        share = weight(value) / weight()
        return math.log((weight(value, y) + self.prior * share) / (weight(None, y) + self.prior) / share)

    def number(self, name, value, y):
        pooled, own = self.values(name), self.values(name, y)
        mean = np.average(pooled[:, 0], weights=pooled[:, 1])
        variance = np.average((pooled[:, 0] - mean) ** 2, weights=pooled[:, 1])
        if variance < 1e-20:
            return 0.0
        # the class's own values, and `prior` values distributed as all are
        n = own[:, 1].sum()
        m = ((own[:, 0] * own[:, 1]).sum() + self.prior * mean) / (n + self.prior)
        spread = (own[:, 1] * (own[:, 0] - m) ** 2).sum() + self.prior * (variance + (mean - m) ** 2)
        v = spread / (n + self.prior) + 1e-9 * variance
        return 0.5 * ((value - mean) ** 2 / variance - (value - m) ** 2 / v - math.log(v / variance))
