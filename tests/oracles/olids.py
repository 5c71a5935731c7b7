"""OLIDS from the equations, with all values of a feature kept."""

import math
from collections import defaultdict

import numpy as np


def variance(past):
    if len({value for value, _ in past}) < 2:  # compare exactly: averages of equal values may have a rounding error
        return 0.0
    v, w = np.array(past).T
    return float(np.average((v - np.average(v, weights=w)) ** 2, weights=w))


def column(name):
    return name.partition("=")[0]


class PlainOLIDS:
    """`history` holds the instances of the stream; problems of one learner share it.

    A name "column=level" is the indicator of a string value: 0 in the rows that hold another value of its column. With
    `clip` its 1 is standardised over those rows.
    """

    def __init__(self, C, theta, lam, B, intercept, history, clip=None):
        self.C, self.theta, self.lam, self.B, self.intercept = C, theta, lam, B, intercept
        self.w, self.rows = defaultdict(float), []
        self.n = {1.0: 1.0, -1.0: 1.0}
        self.history = history
        self.clip = clip

    def negate(self):
        for name in self.w:
            self.w[name] *= -1
        self.n = {1.0: self.n[-1.0], -1.0: self.n[1.0]}

    def values_of(self, name, x=None, w=0.0):
        """Return the values of a feature including those in x; for an indicator, one per row with its column."""
        rows = [*self.rows, *([(x, w)] if x is not None else [])]
        if "=" not in name:
            return [(row[name], weight) for row, weight in rows if name in row]
        return [(float(name in row), weight) for row, weight in rows if column(name) in map(column, row)]

    def parts(self, x, w):
        h = {name: variance(self.values_of(name, x, w)) for name in x}
        past = [seen for seen in self.history if seen is not x]
        columns = {column(name) for name in past[-1]} if past else set()
        stayed = {name for name in x if past and (column(name) in columns or name == self.intercept)}
        total = sum(h.values())
        p_c = sum(h[name] for name in stayed) / total if total > 0 else 1.0
        return {name: p_c if name in stayed else 1 - p_c for name in x}

    def standardised(self, x, w):
        if self.clip is None:
            return x
        out = dict(x)
        for name in x:
            if "=" in name:
                past = self.values_of(name, x, w)
                mean = np.average([v for v, _ in past], weights=[weight for _, weight in past])
                out[name] = min(self.clip, (1 - mean) / variance(past) ** 0.5) if mean < 1 else 0.0
        return out

    def score(self, x):
        p = self.parts(x, 1.0)
        x = self.standardised(x, 1.0)
        return sum(p[name] * self.w[name] * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        if not self.history or self.history[-1] is not x:
            self.history.append(x)
        p = self.parts(x, w)
        given, x = x, self.standardised(x, w)
        loss = max(0.0, 1 - y * sum(p[name] * self.w[name] * value for name, value in x.items()))
        cost = self.theta * self.n[-y] / (self.n[1.0] + self.n[-1.0])
        delta = sum((p[name] * value) ** 2 for name, value in x.items())
        tau = min(self.C * cost * w, loss / delta) if delta > 0 else 0.0
        for name, value in x.items():
            self.w[name] += tau * p[name] * y * value
        self.rows.append((given, w))
        self.n[y] += w
        if self.B < 1:
            self.truncate()

    def truncate(self):
        names = {name for row, _ in self.rows for name in row}
        h = {name: variance(self.values_of(name)) for name in names}
        mass, total = sum(abs(self.w[name]) * h[name] for name in h), sum(h.values())
        if total > 0 and mass / total > self.lam:
            for name in self.w:
                self.w[name] *= self.lam * total / mass
        known = set().union(*self.history) - {self.intercept}
        nonzero = sorted((name for name in known if self.w[name] != 0), key=lambda name: -abs(self.w[name]))
        for name in nonzero[max(1, math.floor(self.B * len(known))) :]:
            self.w[name] = 0.0
