"""Weighted mean of the surprise of four experts, and a fifth of the largest."""

from __future__ import annotations

import numpy as np

from tests.oracles.copuladetector import Copula
from tests.oracles.detection import RecentScores
from tests.oracles.isolationdetector import Isolation
from tests.oracles.neighboursdetector import Neighbours
from tests.oracles.taildetector import Tail


class Auto:
    def __init__(self, seed=0):
        self.experts = [Tail(), Copula(), Neighbours(10), Isolation(32, seed=seed)]
        self.recent = [RecentScores() for _ in self.experts]
        self.losses = {True: [], False: []}  # by kind of label, one list of losses per label

    def score(self, x, slot):
        self.scores = [expert.score(x, slot) for expert in self.experts]
        surprise = -np.log(self.shares())
        return float(self.weights() @ surprise + 0.2 * (self.trust() * surprise).max())

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
        for expert, recent, score in zip(self.experts, self.recent, self.scores, strict=True):
            recent.keep(score)
            expert.learn(x, slot)
