"""OLIDS from the equations, with all values of a feature kept."""

import math
from collections import defaultdict

import numpy as np


def variance(past):
    if not past:
        return 0.0
    v, w = np.array(past).T
    return float(np.average((v - np.average(v, weights=w)) ** 2, weights=w))


class PlainOLIDS:
    """`history` holds the instances of the stream; problems of one learner share it."""

    def __init__(self, C, theta, lam, B, intercept, history):
        self.C, self.theta, self.lam, self.B, self.intercept = C, theta, lam, B, intercept
        self.w, self.values = defaultdict(float), defaultdict(list)
        self.n = {1.0: 1.0, -1.0: 1.0}
        self.history = history

    def negate(self):
        for name in self.w:
            self.w[name] *= -1
        self.n = {1.0: self.n[-1.0], -1.0: self.n[1.0]}

    def parts(self, x, w):
        h = {name: variance([*self.values[name], (value, w)]) for name, value in x.items()}
        past = [seen for seen in self.history if seen is not x]
        stayed = {name for name in x if past and (name in past[-1] or name == self.intercept)}
        total = sum(h.values())
        p_c = sum(h[name] for name in stayed) / total if total > 0 else 1.0
        return {name: p_c if name in stayed else 1 - p_c for name in x}

    def score(self, x):
        p = self.parts(x, 1.0)
        return sum(p[name] * self.w[name] * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        if not self.history or self.history[-1] is not x:
            self.history.append(x)
        p = self.parts(x, w)
        loss = max(0.0, 1 - y * sum(p[name] * self.w[name] * value for name, value in x.items()))
        cost = self.theta * self.n[-y] / (self.n[1.0] + self.n[-1.0])
        delta = sum((p[name] * value) ** 2 for name, value in x.items())
        tau = min(self.C * cost * w, loss / delta) if delta > 0 else 0.0
        for name, value in x.items():
            self.w[name] += tau * p[name] * y * value
            self.values[name].append((value, w))
        self.n[y] += w
        if self.B < 1:
            self.truncate()

    def truncate(self):
        h = {name: variance(past) for name, past in self.values.items()}
        mass, total = sum(abs(self.w[name]) * h[name] for name in h), sum(h.values())
        if total > 0 and mass / total > self.lam:
            for name in self.w:
                self.w[name] *= self.lam * total / mass
        known = set().union(*self.history) - {self.intercept}
        nonzero = sorted((name for name in known if self.w[name] != 0), key=lambda name: -abs(self.w[name]))
        for name in nonzero[max(1, math.floor(self.B * len(known))) :]:
            self.w[name] = 0.0
