"""Naive Bayes from lists of the values seen: weighted means, variances and shares, recomputed every time."""

import math

import numpy as np

from tests.oracles.robust import splitmix64


class PlainGaussianNB:
    def __init__(self, prior, intercept=True):
        self.prior, self.intercept = prior, intercept
        self.labels, self.counts = [], {}
        self.seen = []
        self.unlabelled = 0.0
        self.steps = 0

    def learn(self, x, y, w):
        self.steps += 1
        if y not in self.labels:
            self.labels.append(y)
        if x:
            self.counts[y] = self.counts.get(y, 0.0) + w
            self.seen.append((x, y, w))

    def learn_unlabelled(self, x, w):
        """Online EM: the responsibilities of the classes are weights; all such weights sum to about the labels'.

        One instance in 2k, k being the number of labels, stands for all.
        """
        self.steps += 1
        labelled, every = sum(self.counts.values()), 2 * len(self.labels)
        if len(self.labels) < 2 or not x:
            return
        self.unlabelled += w
        if splitmix64(self.steps - 1) % every:
            return
        w *= min(every * labelled / self.unlabelled, 1.0)
        scores = self.scores(self.known(x))
        powers = {y: math.exp(score - max(scores.values())) for y, score in scores.items()}
        for y, power in powers.items():
            if power / sum(powers.values()) > 0.01:
                self.seen.append((x, y, w * power / sum(powers.values())))

    def known(self, x):
        """Return the features, with their levels, that were learned before."""
        past = {(name, v if isinstance(v, str) else None) for seen, _, _ in self.seen for name, v in seen.items()}
        return {name: v for name, v in x.items() if (name, v if isinstance(v, str) else None) in past}

    def values(self, name, y=None):
        found = [
            (x[name], w)
            for x, label, w in self.seen
            if name in x and not isinstance(x[name], str) and y in (None, label)
        ]
        return np.array(found).reshape(-1, 2)

    def scores(self, x):
        total = sum(self.counts.values()) + self.prior * len(self.labels)
        return {
            y: (math.log((self.counts.get(y, 0.0) + self.prior) / total) if self.intercept else 0.0)
            + sum(self.evidence(name, value, y) for name, value in x.items())
            for y in self.labels
        }

    def evidence(self, name, value, y):
        found = self.level(name, value, y) if isinstance(value, str) else self.number(name, value, y)
        return float(np.clip(found, -50, 50))

    def level(self, name, value, y):
        def weight(level=None, label=None):
            return sum(w for x, of, w in self.seen if name in x and level in (None, x[name]) and label in (None, of))

        share = weight(value) / weight()
        return math.log((weight(value, y) + self.prior * share) / (weight(None, y) + self.prior) / share)

    def number(self, name, value, y):
        pooled, own = self.values(name), self.values(name, y)
        mean = np.average(pooled[:, 0], weights=pooled[:, 1])
        variance = np.average((pooled[:, 0] - mean) ** 2, weights=pooled[:, 1])
        if variance < 1e-20:
            return 0.0
        # the class's own values, and `prior` values distributed as all are
        n = own[:, 1].sum()
        m = ((own[:, 0] * own[:, 1]).sum() + self.prior * mean) / (n + self.prior)
        spread = (own[:, 1] * (own[:, 0] - m) ** 2).sum() + self.prior * (variance + (mean - m) ** 2)
        v = spread / (n + self.prior) + 1e-9 * variance
        return 0.5 * ((value - mean) ** 2 / variance - (value - m) ** 2 / v - math.log(v / variance))
