"""Exponential weights written plainly: numbers to the power of losses, without logarithms."""

import numpy as np


class Experts:
    def __init__(self, k, rate, eta=0.0, share=0.0):
        self.k, self.rate, self.eta_given, self.share_given = k, rate, eta, share
        self.t = 1
        self.losses = np.zeros(k)
        self.a = np.full(k, 1.0 / k)

    def share(self):
        if self.share_given >= 0:
            return self.share_given
        return 1 / (self.eta_given - 1) if self.rate == "horizon" else 1 / (self.t + 1)

    def eta(self):
        if self.rate == "fixed":
            return self.eta_given
        T = self.eta_given if self.rate == "horizon" else self.t
        if self.share_given == 0:
            return np.sqrt(8 * np.log(self.k) / T)
        d = self.share()
        entropy = -d * np.log(d) - (1 - d) * np.log(1 - d)
        return np.sqrt(8 / T * (2 * np.log(self.k) + (T - 1) * entropy))

    def weights(self):
        if self.share_given == 0:
            v = np.exp(-self.eta() * (self.losses - self.losses.min()))
            return v / v.sum()
        return self.a / self.a.sum()

    def learn(self, losses, w=1.0):
        v = self.a * np.exp(-self.eta() * w * np.asarray(losses))
        d = self.share()
        self.a = d / self.k * v.sum() + (1 - d) * v
        self.a /= self.a.sum()
        self.losses += w * np.asarray(losses)
        self.t += 1
