"""One Gaussian per class with absent features, in NumPy, on scaled values of features numbered from 0."""

import numpy as np


class Gaussians:
    def __init__(self, width):
        self.width = width
        self.seen = np.zeros(width)
        self.counts, self.members, self.means, self.weights, self.own = [], [], [], [], []
        self.total = 0.0
        self.common = np.eye(width)

    def add_class(self):
        self.counts.append(0.0)
        self.members.append(0.0)
        self.means.append(np.zeros(self.width))
        self.weights.append(np.zeros(self.width))
        self.own.append(np.eye(self.width))

    def covariance(self, c):
        part = self.counts[c] / (self.counts[c] + 15.0)
        return part * self.own[c] + (1.0 - part) * self.common

    def scores(self, x):
        present = [j for j in range(self.width) if j in x and self.seen[j] >= 2]
        found = []
        for c, n in enumerate(self.counts):
            among = self.covariance(c)[np.ix_(present, present)] + 0.05 * np.eye(len(present))
            far = np.array([x[j] for j in present]) - self.means[c][present]
            found.append(np.log(n + 0.5) - 0.5 * far @ np.linalg.solve(among, far) - 0.5 * np.linalg.slogdet(among)[1])
        return found

    def learn(self, x, y, w=1.0):
        self.absorb(x, y, w, w, w)
        self.counts[y] += w

    def learn_unlabelled(self, x, w=1.0):
        """Classification EM: the most probable class learns, its mean with about the weight that all labels have."""
        labelled = sum(self.counts)
        if len(self.counts) < 2:
            return
        scores = np.array(self.scores(x))
        chances = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        best = int(chances.argmax())
        own = w * chances[best]
        self.absorb(x, best, own, w, own * min(labelled / (self.total - labelled + 1.0), 1.0))

    def absorb(self, x, y, w_own, w_common, w_mean):
        for j in x:
            self.seen[j] += 1
        seen_twice = [j for j in range(self.width) if self.seen[j] >= 2]
        present, absent = [j for j in seen_twice if j in x], [j for j in seen_twice if j not in x]
        full = self.covariance(y)
        among = full[np.ix_(present, present)] + 0.05 * np.eye(len(present))
        far = np.zeros(self.width)
        far[present] = np.array([x[j] for j in present]) - self.means[y][present]
        gain = np.linalg.solve(among, full[np.ix_(present, absent)]).T
        far[absent] = gain @ far[present]
        goal = np.outer(far, far)
        goal[np.ix_(absent, absent)] += full[np.ix_(absent, absent)] - gain @ full[np.ix_(present, absent)]
        at = np.ix_(seen_twice, seen_twice)
        for cov, n, w in ((self.own[y], self.members[y], w_own), (self.common, self.total, w_common)):
            cov[at] += (1.0 - (1.0 - (n + 3.0) ** -0.7) ** w) * (goal[at] - cov[at])
        for j in present:
            self.weights[y][j] = min(self.weights[y][j], 300.0) + w_mean
            self.means[y][j] += w_mean * far[j] / (self.weights[y][j] + 1.0)
        self.members[y] += w_own
        self.total += w_common
