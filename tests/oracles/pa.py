"""Passive-aggressive learning, and OLSF's projection and truncation, as printed."""

import math


class PlainPA:
    def __init__(self, mode, C):
        self.mode, self.C, self.w = mode, C, {}

    def negate(self):
        self.w = {name: -w for name, w in self.w.items()}

    def score(self, x):
        return sum(self.w.get(name, 0.0) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        loss = max(0.0, 1 - y * self.score(x))
        norm = sum(value**2 for value in x.values())
        if self.mode == "pa2":
            tau = loss / (norm + 1 / (2 * self.C * w))
        elif norm == 0:
            tau = 0.0
        else:
            tau = min(self.C * w if self.mode == "pa1" else math.inf, loss / norm)
        for name, value in x.items():
            self.w[name] = self.w.get(name, 0.0) + tau * y * value


class PlainOLSF(PlainPA):
    def __init__(self, mode, C, lam, B, intercept):
        super().__init__(mode, C)
        self.lam, self.B, self.intercept = lam, B, intercept

    def learn(self, x, y, w, fresh):
        super().learn(x, y, w, fresh)
        norm = sum(abs(w) for w in self.w.values())
        if norm > self.lam:
            self.w = {name: w * self.lam / norm for name, w in self.w.items()}
        names = [name for name in self.w if name != self.intercept]
        nonzero = [name for name in names if self.w[name] != 0.0]
        if len(nonzero) > self.B * len(names):
            keep = max(1, math.floor(self.B * len(names)))
            nonzero.sort(key=lambda name: -abs(self.w[name]))
            for name in nonzero[keep:]:
                self.w[name] = 0.0
