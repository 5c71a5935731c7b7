"""OCDS with the graph as a dict of dicts, all updates simultaneous, and every known feature updated."""

import math
from collections import defaultdict

import numpy as np
from scipy.special import expit


class PlainOCDS:
    """`known` holds the features seen (including the intercept), in order; problems of one learner share it."""

    def __init__(self, alpha, beta1, beta2, gamma, T, max_dense, intercept, known):
        self.alpha, self.beta1, self.beta2, self.gamma, self.T = alpha, beta1, beta2, gamma, T
        self.intercept, self.known, self.max_dense = intercept, known, max_dense
        self.w = defaultdict(float)
        self.G = defaultdict(float)
        self.t, self.p, self.R_obs, self.R_rec = 0, 0.5, 0.0, 0.0

    def negate(self):
        for name in self.w:
            self.w[name] *= -1

    def link(self, i, j):
        """Return G_ij; features beyond max_dense are only linked to themselves."""
        return self.G[i, j] + (1.0 if i == j else 0.0)

    def dense(self):
        return {self.intercept, *[name for name in self.known if name != self.intercept][: self.max_dense]}

    def linked(self, i, j):
        return i == j or {i, j} <= self.dense()

    def psi(self, x, names):
        return {j: sum(self.link(i, j) * x[i] for i in x if self.linked(i, j)) / len(x) for j in names}

    def parts(self, x):
        psi = self.psi(x, self.known)
        return sum(self.w[i] * x[i] for i in x), sum(self.w[j] * psi[j] for j in self.known if j not in x)

    def score(self, x):
        seen, rebuilt = self.parts(x)
        return self.p * seen + (1 - self.p) * rebuilt

    def learn(self, x, y, w, fresh):
        for name in sorted(x, key=lambda name: (name != self.intercept, name)):
            if name not in self.known:
                self.known.append(name)
        names, n = list(self.known), len(x)
        psi = self.psi(x, names)
        seen, rebuilt = self.parts(x)
        self.t += 1
        self.R_obs += w * math.log1p(math.exp(-y * seen))
        self.R_rec += w * math.log1p(math.exp(-y * rebuilt))
        e = y - sum(self.w[j] * psi[j] for j in names)
        eta = w / math.sqrt(self.t)
        norm_x = sum(v * v for v in x.values())
        norm_w = sum(self.w[j] ** 2 for j in self.dense() | set(x))
        norm_psi = sum(v * v for v in psi.values())
        eta_G = min(eta, n * n / (4 * (self.alpha + norm_w) * norm_x)) if norm_x else eta
        eta_w = min(eta, 1 / (4 * norm_psi)) if norm_psi else eta
        smooth = self.laplacian(names)
        new_w = {
            j: self.w[j]
            + eta_w * (2 * e * psi[j] - self.beta1 * float(np.sign(self.w[j])) - 2 * self.beta2 * smooth[j])
            for j in names
        }
        for i in x:
            for j in names:
                if self.linked(i, j):
                    pull = e * self.w[j] + (self.alpha * (x[j] - psi[j]) if j in x else 0.0)
                    self.G[i, j] += eta_G * 2 / n * pull * x[i]
        self.w.update(new_w)
        self.truncate()
        if self.t % self.T == 0:
            rate = 8 * math.sqrt(1 / math.log(self.T)) if self.T > 1 else math.sqrt(8 * math.log(2) / self.t)
            self.p = float(expit(rate * (self.R_rec - self.R_obs)))

    def laplacian(self, names):
        out = dict.fromkeys(names, 0.0)
        if self.beta2:
            for i in names:
                for j in names:
                    if i != j and self.linked(i, j):
                        out[i] += (abs(self.link(i, j)) + abs(self.link(j, i))) / 2 * (self.w[i] - self.w[j])
        return out

    def truncate(self):
        names = [j for j in self.known if j != self.intercept]
        ranked = sorted((j for j in names if self.w[j] != 0), key=lambda j: -abs(self.w[j]))
        for j in ranked[max(1, math.floor(self.gamma * len(names))) :] if self.gamma < 1 else []:
            self.w[j] = 0.0
