"""FTRL-Proximal as printed: sums of gradients and of squared gradients; weights are computed when needed."""

import math
from collections import defaultdict

from scipy.special import expit


class PlainFTRLProximal:
    def __init__(self, alpha, beta, L1, L2, intercept):
        self.alpha, self.beta, self.L1, self.L2, self.intercept = alpha, beta, L1, L2, intercept
        self.z, self.n = defaultdict(float), defaultdict(float)

    def negate(self):
        for name in self.z:
            self.z[name] *= -1

    def weight(self, name):
        z, l1 = self.z[name], 0.0 if name == self.intercept else self.L1
        if abs(z) <= l1:
            return 0.0
        return -(z - math.copysign(l1, z)) / ((self.beta + math.sqrt(self.n[name])) / self.alpha + self.L2)

    def score(self, x):
        return sum(self.weight(name) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        slope = -y * float(expit(-y * self.score(x)))
        self.step({name: w * slope * value for name, value in x.items()})

    def step(self, gradients):
        for name, g in gradients.items():
            sigma = (math.sqrt(self.n[name] + g * g) - math.sqrt(self.n[name])) / self.alpha
            self.z[name] += g - sigma * self.weight(name)
            self.n[name] += g * g
