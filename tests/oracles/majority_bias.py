"""Bias scores to the majority class, written from decision 0040."""

import math


class MajorityBias:
    """Bias from class shares, added to the scores while the majority class is right more often than the margins."""

    def __init__(self):
        self.lead, self.counts, self.sizes = 0.0, {}, []

    def added(self, label):
        if len(self.counts) < 2:
            return 0.0
        unit = max(1.0, sum(w * size for size, w in self.sizes) / sum(self.counts.values()))
        share = self.counts[label] / sum(self.counts.values())
        return 2 * unit * (2 * share - 1) / (1 + math.exp(self.lead))

    def learn(self, scores, y, w):
        """Learn a label; `scores` are those before the instance is learned, in order of the labels' appearance."""
        for label in scores:
            self.counts.setdefault(label, 0.0)
        own, common = (max(of, key=of.get) for of in (scores, self.counts))
        if len(scores) > 1 and own != common and y in (own, common):
            self.lead = min(max(self.lead + (w if own == y else -w), -30.0), 30.0)
        self.counts[y] += w
        self.sizes.append((abs(scores[own]), w))
