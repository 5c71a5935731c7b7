"""FOBOS with every coordinate shrunk in every round."""

import math

from scipy.special import expit


class PlainFOBOS:
    def __init__(self, eta, lam, loss, intercept):
        self.eta, self.lam, self.loss, self.intercept = eta, lam, loss, intercept
        self.t, self.w = 0, {}

    def negate(self):
        self.w = {name: -w for name, w in self.w.items()}

    def score(self, x):
        return sum(self.w.get(name, 0.0) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        self.t += 1
        eta = self.eta / math.sqrt(self.t)
        margin = y * self.score(x)
        slope = float(expit(-margin)) if self.loss == "logistic" else float(margin < 1)
        for name, value in x.items():
            self.w[name] = self.w.get(name, 0.0) + eta * w * y * slope * value
        for name, weight in self.w.items():
            if name != self.intercept:
                self.w[name] = math.copysign(max(0.0, abs(weight) - eta * self.lam), weight)
