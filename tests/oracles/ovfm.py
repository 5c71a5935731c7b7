"""OVFM: linear learners on the values, on the latent scores and on presence, and the weights of the three."""

import copy
import math

import numpy as np

from tests.oracles.arow import PlainAROW
from tests.oracles.copula import PlainCopula
from tests.oracles.ftrladp import PlainFTRLADP
from tests.oracles.ogd import PlainOGD

ONE = "the intercept"


class PlainOVFM:
    """One problem; the caller updates the copula and passes both views."""

    def __init__(self, latent_only=False, eta=None, horizon=None, radius=None, base="arow", presence=True, keep=1.0):
        self.latent_only, self.eta, self.horizon, self.radius = latent_only, eta, horizon, radius
        self.arow, self.keep, self.known = base == "arow", keep, []
        self.base = base
        self.raw, self.latent = self.learner(), self.learner()
        self.there = self.learner() if presence and not latent_only else None
        self.R, self.t = np.array([0.0, 0.0] if self.there is None else [0.0, 0.0, 10.0, 10.0, 10.0]), 0

    def learner(self):
        if self.base == "sgd":
            return PlainOGD(1 / math.log(2))  # steps of 1 / sqrt(t) on the loss in nats
        return PlainAROW(10.0, "diagonal") if self.arow else PlainFTRLADP(per_coordinate=True)

    def views(self, x, z, here):
        """Return pairs (learner, input), in the order of the weights; `here` is presence minus its rate."""
        pairs = [(self.raw, x), (self.latent, z)]
        return pairs if self.there is None else [*pairs, (self.there, here)]

    def negate(self):
        for learner, _ in self.views({}, {}, {}):
            learner.negate()

    def weights(self):
        rate = self.eta or math.sqrt(8 * math.log(len(self.R)) / (self.horizon or self.t + 1))
        weights = np.exp(-rate * (self.R - self.R.min()))
        return weights / weights.sum()

    def opinions(self, *seen):
        """Return the scores of the experts: the learners, then the first two plus the score of presence."""
        own = [learner.score(s) for learner, s in self.views(*seen)]
        return np.array(own if len(own) == 2 else [*own, own[0] + own[2], own[1] + own[2]])

    def score(self, *seen):
        if self.latent_only:
            return self.opinions(*seen)[1]
        return self.weights() @ self.opinions(*seen)

    def learn(self, x, z, here, y, w):
        odds = 2 if self.arow else 1
        self.R += w * np.logaddexp(0, -odds * y * self.opinions(x, z, here))
        self.t += 1
        order = ({},) if self.arow else ()
        for learner, seen in self.views(x, z, here):
            learner.learn(seen, y, w, set(), *order)
            if self.radius is not None:
                self.project(learner)
            if self.keep < 1:
                self.truncate(learner)

    def truncate(self, learner):
        """Set all but the largest weights (a share of the known features) to zero."""
        held = learner.w if self.base == "sgd" else learner.names if self.arow else learner.v
        size = {n: abs(learner.w[n] if self.base == "sgd" else learner.weight(n)) for n in held if n != ONE}
        count = math.ceil(self.keep * len(self.known) - 1e-9)
        if len(size) <= count:
            return
        least = sorted(size.values())[-count]
        kept = [n for n in size if size[n] > least * (1 + 1e-9)]
        equal = [n for n in self.known if n in size and n not in kept and size[n] >= least * (1 - 1e-9)]
        for name in set(size) - {*kept, *equal[: count - len(kept)]}:
            if self.arow:
                learner.mu[learner.names.index(name)] = 0.0
            elif self.base == "sgd":
                learner.w[name] = 0.0
            else:
                learner.v[name] = learner.h[name] = 0.0

    def project(self, learner):
        if self.base == "sgd":
            total = sum(abs(w) for name, w in learner.w.items() if name != ONE)
            if total > self.radius:
                learner.w = {name: w * (1 if name == ONE else self.radius / total) for name, w in learner.w.items()}
            return
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
        self.labels, self.problems, self.known = [], [make()], []

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

    def here(self, x):
        """Return presence minus its rate: of every feature in the copula, and of the others if present."""
        names = [*self.copula.names, *(name for name in x if name not in self.copula.names)]
        return self.with_one({name: float(name in x) - self.copula.rate(name) for name in names})

    def scores(self, x, raw):
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        z = self.with_one(self.copula.scores(raw))
        found = [p.score(self.with_one(x), z, self.here(x)) for p in self.problems]
        return dict(zip(self.labels, found if len(found) > 1 else [-found[0], found[0]], strict=True))

    def learn(self, x, raw, y, w):
        self.known += sorted(set(x) - set(self.known))
        for problem in self.problems:
            problem.known = self.known
        here = self.here(x)
        z = self.with_one(self.copula.learn(raw, w))
        for name in self.copula.left:
            for problem in self.problems:
                problem.latent.forget(name)
        x = self.with_one(x)
        if len(self.problems) == 1:
            self.problems[0].learn(x, z, here, 1.0 if self.labels.index(y) == 1 else -1.0, w)
        else:
            for label, problem in zip(self.labels, self.problems, strict=True):
                problem.learn(x, z, here, 1.0 if y == label else -1.0, w)

    def learn_unlabelled(self, raw, w):
        """Update the copula alone."""
        self.known += sorted(set(raw) - set(self.known))
        self.copula.learn(raw, w)
        for name in self.copula.left:
            for problem in self.problems:
                problem.latent.forget(name)
