"""FTRL-ADP with every known coordinate updated in every round."""

import math
from collections import defaultdict

from scipy.special import expit


class PlainFTRLADP:
    def __init__(self, L1=0.0, L2=0.0, LP=1.0, decay=4, kappa=0.01, per_coordinate=False):
        self.L1, self.L2, self.LP, self.decay, self.kappa = L1, L2, LP, decay, kappa
        self.per_coordinate = per_coordinate
        self.v, self.h, self.r = defaultdict(float), defaultdict(float), 1.0
        self.own_r = defaultdict(lambda: 1.0)
        self.T = self.F = self.Tw = self.Fw = 0
        self.p_min, self.s_min = 1.0, 10.0
        self.drifts = 0

    def negate(self):
        for name in self.v:
            self.v[name] *= -1
        for name in self.h:
            self.h[name] *= -1

    def weight(self, name):
        z = self.v[name] - self.LP * self.h[name]
        if abs(z) <= self.L1:
            return 0.0
        r = self.own_r[name] if self.per_coordinate else self.r
        return -(z - math.copysign(self.L1, z)) / (self.L2 + self.LP * r)

    def score(self, x):
        return sum(self.weight(name) * value for name, value in x.items())

    def learn(self, x, y, w, fresh):
        p = float(expit(self.score(x)))
        y = (y + 1) / 2
        keep = self.watch(abs(y - p) > 0.5)
        for name in x:
            self.v[name], self.h[name]
        coordinates = list(x) if self.per_coordinate else list(self.v)
        before = {name: self.weight(name) for name in coordinates}
        for name in coordinates:
            self.v[name] += w * (p - y) * x.get(name, 0.0)
            self.h[name] = keep * self.h[name] + before[name]
            self.own_r[name] = 1 + keep * self.own_r[name]
        self.r = 1 + keep * self.r

    def watch(self, e):
        self.T += 1
        self.F += e
        T = self.T
        keep = [1 - T ** (-1 / 3), 1 - T**-0.5, 1 - 1 / T, T / (T + 1), 1 - math.log(T) / (2 * T)][self.decay]
        if T > 30:
            pi = (self.F + 1) / (T + 2)
            s = math.sqrt(pi * (1 - pi) / T)
            keep = (1 - self.kappa) * keep + self.kappa * pi
            if pi + s < self.p_min + self.s_min:
                self.p_min, self.s_min = pi, s
            if pi + s < self.p_min + 2 * self.s_min:
                self.Tw = self.Fw = 0
            else:
                self.Tw += 1
                self.Fw += e
                if pi + s > self.p_min + 3 * self.s_min:
                    self.T, self.F, self.p_min, self.s_min = self.Tw, self.Fw, 1.0, 10.0
                    self.drifts += 1
        return keep
