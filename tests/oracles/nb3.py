"""Presence-only naive Bayes from the list of instances."""

import math


class PlainNB3:
    def __init__(self, M, prior, intercept=True):
        self.M, self.prior, self.intercept = M, prior, intercept
        self.labels, self.seen = [], []

    def learn(self, x, y, w):
        if y not in self.labels:
            self.labels.append(y)
        if x:
            self.seen.append((frozenset(x), y, w))

    def weight(self, name=None, y=None):
        return sum(w for x, label, w in self.seen if (name is None or name in x) and y in (None, label))

    def chi2(self, name):
        total, found = self.weight(), 0.0
        for y in self.labels:
            for held in (True, False):
                inside = self.weight(name, y)
                got = inside if held else self.weight(None, y) - inside
                margin = self.weight(name) if held else total - self.weight(name)
                expected = margin * self.weight(None, y) / total
                found += (got - expected) ** 2 / expected if expected > 0 else 0.0
        return found

    def scores(self, x):
        names = sorted(x)
        if self.M < 1:
            names = sorted(names, key=lambda name: -round(self.chi2(name), 12))[: math.ceil(self.M * len(names))]
        a, total = self.prior, self.weight()
        share = {y: (self.weight(None, y) + a) / (total + a * len(self.labels)) for y in self.labels}
        return {
            y: (math.log(share[y]) if self.intercept else 0.0)
            + sum(
                math.log((self.weight(name, y) + a * share[y]) / (self.weight(name) + a)) - math.log(share[y])
                for name in names
            )
            for y in self.labels
        }
