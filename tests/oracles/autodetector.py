"""Mean of the surprise of four experts, a fifth of the largest, and that of unusual absence or of rare columns."""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.copuladetector import Copula
from tests.oracles.detection import RecentScores, column
from tests.oracles.isolationdetector import Isolation
from tests.oracles.neighboursdetector import Neighbours
from tests.oracles.taildetector import Tail


class Absence:
    """Shares of presence since a column was first seen; only the columns of the last instance can be missing."""

    def __init__(self):
        self.count, self.share, self.before = {}, {}, set()
        self.mean, self.variance, self.learned = 0.0, 0.0, 0

    def present(self, x):
        """Surprise of each column that is present and was seen before."""
        here = {column(name) or name for name in x}
        return [-math.log(max(self.share[name], 1e-4)) for name in here & set(self.share)]

    def rarity(self, x):
        surprises = self.present(x)
        return (sum(surprises) + 5 * self.mean) / (len(surprises) + 5)

    def score(self, x, slot):
        here = {column(name) or name for name in x}
        total, variance = 0.0, 1.0
        for name in self.before:
            q = max(1 - self.share[name], 1e-4)
            surprise = -math.log(q)
            total += (name not in here) * surprise - q * surprise
            variance += q * (1 - q) * surprise**2
        return total / math.sqrt(variance)

    def learn(self, x, slot):
        if surprises := self.present(x):
            rate = max(1 / (self.learned + 1), 0.01)
            self.mean += rate * (np.mean(surprises) - self.mean)
            self.variance += rate * (np.var(surprises) - self.variance)
        self.learned += 1
        self.before = {column(name) or name for name in x}
        for name in self.before | set(self.count):
            self.count[name] = self.count.get(name, 0) + 1
            share = self.share.get(name, 0.5)
            self.share[name] = share + ((name in self.before) - share) * max(1 / (self.count[name] + 1), 0.01)


class Auto:
    def __init__(self, seed=0):
        self.experts = [Tail(), Copula(), Neighbours(10), Isolation(32, seed=seed)]
        self.recent = [RecentScores() for _ in self.experts]
        self.absence, self.absences, self.rarities = Absence(), RecentScores(), RecentScores()
        self.losses = {True: [], False: []}  # by kind of label, one list of losses per label

    def score(self, x, slot):
        self.scores = [expert.score(x, slot) for expert in self.experts]
        surprise = -np.log(self.shares())
        absent = self.absence.score(x, slot)
        unusual = -0.25 * math.log(self.absences.beyond(absent)) if absent > 3 and self.absences.scores else 0.0
        rare = -math.log(self.rarities.beyond(self.absence.rarity(x))) if self.rarities.scores else 0.0
        rare *= self.absence.variance > 1
        return float(self.weights() @ surprise + 0.2 * (self.trust() * surprise).max() + unusual + rare)

    def shares(self):
        return np.array([r.beyond(s) if r.scores else 1.0 for r, s in zip(self.recent, self.scores, strict=True)])

    def label(self, x, slot, anomaly):
        self.score(x, slot)
        shares = self.shares()
        self.losses[anomaly].append(shares if anomaly else 1 - shares)

    def trust(self):
        """Return exp(-4 n (loss - least loss)) by expert, where labels fade by .01 within their kind."""
        if not all(self.losses.values()):
            return np.ones(4)
        means, counts = [], []
        for losses in self.losses.values():
            age = 0.99 ** np.arange(len(losses))[::-1]
            counts.append(age.sum())
            means.append(age @ np.array(losses) / age.sum())
        loss = np.mean(means, axis=0)
        return np.exp(-4 * min(counts) * (loss - loss.min()))

    def weights(self):
        weights = np.array([1.0, 0.5, 2.0, 1.0]) * self.trust()
        return weights / weights.sum()

    def learn(self, x, slot):
        self.score(x, slot)
        self.absences.keep(self.absence.score(x, slot))
        self.rarities.keep(self.absence.rarity(x))
        self.absence.learn(x, slot)
        for expert, recent, score in zip(self.experts, self.recent, self.scores, strict=True):
            recent.keep(score)
            expert.learn(x, slot)
