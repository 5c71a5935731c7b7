"""OVFM: two linear learners, on the values and on the latent scores, and the weights of the two."""

import copy
import math

import numpy as np

from tests.oracles.arow import PlainAROW
from tests.oracles.copula import PlainCopula
from tests.oracles.ftrladp import PlainFTRLADP

ONE = "the intercept"


class PlainOVFM:
    """One problem: the copula is fed by the caller, who passes both views."""

    def __init__(self, latent_only=False, eta=None, horizon=None, radius=None, base="arow"):
        self.latent_only, self.eta, self.horizon, self.radius = latent_only, eta, horizon, radius
        self.arow = base == "arow"
        self.raw, self.latent = self.learner(), self.learner()
        self.R, self.t = np.zeros(2), 0

    def learner(self):
        return PlainAROW(10.0, "diagonal") if self.arow else PlainFTRLADP(per_coordinate=True)

    def negate(self):
        self.raw.negate()
        self.latent.negate()

    def share(self):
        if self.latent_only:
            return 0.0
        rate = self.eta or math.sqrt(8 * math.log(2) / (self.horizon or self.t + 1))
        return 1 / (1 + math.exp(min(50.0, rate * (self.R[0] - self.R[1]))))

    def score(self, x, z):
        a = self.share()
        return a * self.raw.score(x) + (1 - a) * self.latent.score(z)

    def learn(self, x, z, y, w):
        loss = np.array([np.logaddexp(0, -y * self.raw.score(x)), np.logaddexp(0, -y * self.latent.score(z))])
        self.R += w * loss
        self.t += 1
        order = ({},) if self.arow else ()
        self.raw.learn(x, y, w, set(), *order)
        self.latent.learn(z, y, w, set(), *order)
        if self.radius is not None:
            for learner in (self.raw, self.latent):
                self.project(learner)

    def project(self, learner):
        names = [name for name in (learner.names if self.arow else learner.v) if name != ONE]
        total = sum(abs(learner.weight(name)) for name in names)
        if total <= self.radius:
            return
        for name in names:
            if self.arow:
                learner.mu[learner.names.index(name)] *= self.radius / total
            else:
                learner.v[name] *= self.radius / total
                learner.h[name] *= self.radius / total


class PlainOVFMStream:
    """Copula and one-versus-rest together; x is scaled for the raw learner, `raw` as given."""

    def __init__(self, make=PlainOVFM, intercept=True, **copula):
        self.make, self.intercept = make, intercept
        self.copula = PlainCopula(**copula)
        self.labels, self.problems = [], [make()]

    def meet(self, y):
        if y in self.labels:
            return
        self.labels.append(y)
        if len(self.labels) == 3:
            self.problems = [copy.deepcopy(self.problems[0]), self.problems[0], self.make()]
            self.problems[0].negate()
        elif len(self.labels) > 3:
            self.problems.append(self.make())

    def with_one(self, x):
        return {ONE: 1.0, **x} if self.intercept else dict(x)

    def scores(self, x, raw):
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        z = self.with_one(self.copula.scores(raw))
        found = [p.score(self.with_one(x), z) for p in self.problems]
        return dict(zip(self.labels, found if len(found) > 1 else [-found[0], found[0]], strict=True))

    def learn(self, x, raw, y, w):
        z = self.with_one(self.copula.learn(raw, w))
        x = self.with_one(x)
        if len(self.problems) == 1:
            self.problems[0].learn(x, z, 1.0 if self.labels.index(y) == 1 else -1.0, w)
        else:
            for label, problem in zip(self.labels, self.problems, strict=True):
                problem.learn(x, z, 1.0 if y == label else -1.0, w)
