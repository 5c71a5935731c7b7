"""Passive-aggressive learning, and OLSF's projection and truncation, as printed."""

import functools
import math
import operator


def total(values):
    """Add from left to right. From Python 3.12 on `sum` compensates for rounding, which decides ties differently."""
    return functools.reduce(operator.add, values, 0.0)


class PlainPA:
    def __init__(self, mode, C):
        self.mode, self.C, self.w = mode, C, {}

    def negate(self):
        self.w = {name: -w for name, w in self.w.items()}

    def score(self, x):
        return total(self.w.get(name, 0.0) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        loss = max(0.0, 1 - y * self.score(x))
        norm = total(value**2 for value in x.values())
        if self.mode == "pa2":
            tau = loss / (norm + 1 / (2 * self.C * w))
        elif norm == 0:
            tau = 0.0
        else:
            tau = min(self.C * w if self.mode == "pa1" else math.inf, loss / norm)
        for name, value in x.items():
            self.w[name] = self.w.get(name, 0.0) + tau * y * value


class PlainOLSF(PlainPA):
    """`known` is the set of features seen; problems of one learner share it."""

    def __init__(self, mode, C, lam, B, intercept, known):
        super().__init__(mode, C)
        self.lam, self.B, self.intercept, self.known = lam, B, intercept, known

    def learn(self, x, y, w, fresh):
        super().learn(x, y, w, fresh)
        self.known |= set(x) - {self.intercept}
        norm = total(abs(w) for w in self.w.values())
        if norm > self.lam:
            self.w = {name: w * self.lam / norm for name, w in self.w.items()}
        nonzero = [name for name, w in self.w.items() if w != 0.0 and name != self.intercept]
        if len(nonzero) > self.B * len(self.known):
            nonzero.sort(key=lambda name: -abs(self.w[name]))
            for name in nonzero[max(1, math.floor(self.B * len(self.known))) :]:
                self.w[name] = 0.0
