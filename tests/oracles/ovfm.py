"""OVFM: linear learners on the values, on the latent scores and on presence, and the weights of the three."""

import copy
import math

import numpy as np

from tests.oracles.arow import PlainAROW
from tests.oracles.copula import PlainCopula
from tests.oracles.ftrladp import PlainFTRLADP

ONE = "the intercept"


class PlainOVFM:
    """One problem: the copula is fed by the caller, who passes both views."""

    def __init__(self, latent_only=False, eta=None, horizon=None, radius=None, base="arow", presence=True):
        self.latent_only, self.eta, self.horizon, self.radius = latent_only, eta, horizon, radius
        self.arow = base == "arow"
        self.raw, self.latent = self.learner(), self.learner()
        self.there = self.learner() if presence and not latent_only else None
        self.R, self.t = np.zeros(2 if self.there is None else 3), 0

    def learner(self):
        return PlainAROW(10.0, "diagonal") if self.arow else PlainFTRLADP(per_coordinate=True)

    def views(self, x, z):
        """(learner, what it sees), in the order of the weights."""
        pairs = [(self.raw, x), (self.latent, z)]
        return pairs if self.there is None else [*pairs, (self.there, dict.fromkeys(x, 1.0))]

    def negate(self):
        for learner, _ in self.views({}, {}):
            learner.negate()

    def weights(self):
        if self.latent_only:
            return np.array([0.0, 1.0])
        rate = self.eta or math.sqrt(8 * math.log(len(self.R)) / (self.horizon or self.t + 1))
        weights = np.exp(-rate * (self.R - self.R.min()))
        return weights / weights.sum()

    def score(self, x, z):
        return sum(a * learner.score(seen) for a, (learner, seen) in zip(self.weights(), self.views(x, z), strict=True))

    def learn(self, x, z, y, w):
        self.R += w * np.array([np.logaddexp(0, -y * learner.score(seen)) for learner, seen in self.views(x, z)])
        self.t += 1
        order = ({},) if self.arow else ()
        for learner, seen in self.views(x, z):
            learner.learn(seen, y, w, set(), *order)
            if self.radius is not None:
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
        for name in self.copula.left:
            for problem in self.problems:
                problem.latent.forget(name)
        x = self.with_one(x)
        if len(self.problems) == 1:
            self.problems[0].learn(x, z, 1.0 if self.labels.index(y) == 1 else -1.0, w)
        else:
            for label, problem in zip(self.labels, self.problems, strict=True):
                problem.learn(x, z, 1.0 if y == label else -1.0, w)
