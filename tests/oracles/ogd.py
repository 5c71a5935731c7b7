"""w <- w + tau_t / ln 2 * y x sigma(-y f), tau_t = 1 / (c sqrt t)."""

import math

from scipy.special import expit


class PlainOGD:
    def __init__(self, c):
        self.c, self.t, self.w = c, 0, {}

    def negate(self):
        self.w = {name: -w for name, w in self.w.items()}

    def score(self, x):
        return sum(self.w.get(name, 0.0) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        self.t += 1
        slope = float(expit(-y * self.score(x)))
        for name, value in x.items():
            self.w[name] = self.w.get(name, 0.0) + w / (self.c * math.sqrt(self.t)) / math.log(2) * y * value * slope
