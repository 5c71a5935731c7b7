"""OVFIV over any plain base: every known column's absence indicator written out, losses summed, weights as powers."""

import math

import numpy as np
from scipy.special import expit

from tests.oracles.ftrlproximal import PlainFTRLProximal
from tests.oracles.harness import ONE, OneVsRest

BIAS = "the bias"


class Variation(PlainFTRLProximal):
    """Square loss on indicators; a two-class problem with labels ±1."""

    def __init__(self, lam, alpha=0.1, beta=1.0, L2=0.0, bias=True):
        super().__init__(alpha, beta, lam, L2, intercept=BIAS)
        self.bias = bias

    def learn(self, m, y, w, fresh):
        f = self.score(m)
        counted = {name: value for name, value in m.items() if value and (self.bias or name != BIAS)}
        self.step({name: w * 2 * (f - y) * value for name, value in counted.items()})


class PlainOVFIV:
    def __init__(self, make_base, eta, lam=1.0, presence=False, bias=True, alone=False, mix="probability", prior=0.5):
        self.base, self.variation = OneVsRest(make_base), OneVsRest(lambda: Variation(lam, bias=bias))
        self.alone, self.mix, self.prior = alone, mix, prior
        self.eta, self.presence = eta, presence
        self.known, self.counts = set(), {}
        self.L_O = self.L_M = 0.0
        self.t = 1

    def meet(self, y):
        self.base.meet(y)
        self.variation.meet(y)

    def rate(self):
        if self.eta == "adaptive":
            return math.sqrt(8 * math.log(2) / self.t)
        return math.sqrt(8 * math.log(2) / self.eta[1]) if isinstance(self.eta, tuple) else self.eta

    def weight(self):
        """Return eq. 8 from a prior: alpha e^(-eta L_O) over its sum with (1 - alpha) e^(-eta L_M)."""
        best = min(self.L_O, self.L_M)
        values = self.prior * math.exp(-self.rate() * (self.L_O - best))
        variation = (1 - self.prior) * math.exp(-self.rate() * (self.L_M - best))
        return values / (values + variation)

    def indicators(self, x):
        return {BIAS: 1.0, **{name: float((name in x) == self.presence) for name in self.known | set(x) - {ONE}}}

    def probabilities(self, x):
        labels = self.base.labels
        if set(x) - {ONE}:
            p = {y: float(expit(f)) for y, f in self.base.scores(x).items()}
        else:
            p = {y: self.counts.get(y, 0.0) for y in labels}
            if not any(p.values()):
                p = dict.fromkeys(labels, 1.0)
        m = {y: float(np.clip((1 + f) / 2, 0, 1)) for y, f in self.variation.scores(self.indicators(x)).items()}
        if len(labels) > 1 and sum(m.values()) == 0:
            m = dict.fromkeys(labels, 1.0)
        if len(labels) == 1:
            p, m = dict.fromkeys(labels, 1.0), dict.fromkeys(labels, 1.0)
        return {y: v / sum(p.values()) for y, v in p.items()}, {y: v / sum(m.values()) for y, v in m.items()}

    def raw_scores(self, x):
        """Return both learners' scores, which the paper mixes; 0 for a learner without input."""
        p = self.base.scores(x) if set(x) - {ONE} else dict.fromkeys(self.base.labels, 0.0)
        return p, self.variation.scores(self.indicators(x))

    def scores(self, x):
        if self.mix == "score":
            p, m = self.raw_scores(x)
            a = self.weight()
            return {y: a * p[y] + (1 - a) * m[y] for y in p}
        p, m = self.probabilities(x)
        a = 0.0 if self.alone else self.weight()
        return {y: 2 * (a * p[y] + (1 - a) * m[y]) - 1 for y in p}

    def learn(self, x, y, w, fresh):
        old = {name: value for name, value in x.items() if name == ONE or name not in fresh}
        if self.mix == "score":
            p, m = self.raw_scores(old)
            target = {c: 1.0 if c == y else -1.0 for c in p}
        else:
            p, m = self.probabilities(old)
            target = {c: float(c == y) for c in p}
        self.L_O += w * sum(0.5 * (target[c] - p[c]) ** 2 for c in p)
        self.L_M += w * sum(0.5 * (target[c] - m[c]) ** 2 for c in m)
        if set(x) - {ONE}:
            self.base.learn(x, y, w, fresh)
        self.known |= set(x) - {ONE}
        self.variation.learn(self.indicators(x), y, w, fresh)
        self.counts[y] = self.counts.get(y, 0.0) + w
        self.t += 1
