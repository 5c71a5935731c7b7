"""Additive learner from its definition: AROW on an explicit vector of bin indicators, values and a constant."""

import numpy as np

MASK = (1 << 64) - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Feature:
    """Sample of a feature's values (the first 128, then a reservoir) and its octiles."""

    def __init__(self, slot):
        self.slot, self.seen, self.sample, self.edges = slot, 0, [], None

    def absorb(self, x):
        n = self.seen
        if n < 128:
            self.sample.append(x)
        else:
            place = mix(mix(mix(0) ^ self.slot) ^ n) % (n + 1)
            if place < 128:
                self.sample[place] = x
        self.seen += 1
        if self.seen >= 4 and self.seen & (self.seen - 1) == 0:
            values = sorted(self.sample)
            self.edges = [values[j * len(values) // 8] for j in range(1, 8)]

    def bin(self, x):
        return None if self.seen < 4 else sum(x > e for e in self.edges)


class Additive:
    """Binary learner with labels -1 and +1; instances are {slot: (raw, scaled)}."""

    def __init__(self, r=30.0, memory=0.0):
        self.r, self.ceiling = r, memory / r if memory else np.inf
        self.features, self.mean, self.precision = {}, {}, {}

    def vector(self, x):
        phi = {"bias": 1.0}
        for slot, (raw, z) in x.items():
            phi[slot, "value"] = z
            known = self.features.get(slot)
            b = None if known is None else known.bin(raw)
            if b is not None:
                phi[slot, b] = 1.0
        return phi

    def margin(self, x):
        return sum(self.mean.get(k, 0.0) * v for k, v in self.vector(x).items())

    def learn(self, x, y):
        for slot, (raw, _) in x.items():
            self.features.setdefault(slot, Feature(slot)).absorb(raw)
        phi = self.vector(x)
        loss = 1.0 - y * sum(self.mean.get(k, 0.0) * v for k, v in phi.items())
        if loss <= 0:
            return
        variance = {k: 1.0 / (1.0 + self.precision.get(k, 0.0)) for k in phi}
        beta = 1.0 / (sum(v * v * variance[k] for k, v in phi.items()) + self.r)
        for k, v in phi.items():
            self.mean[k] = self.mean.get(k, 0.0) + beta * loss * y * variance[k] * v
            self.precision[k] = min(self.precision.get(k, 0.0) + v * v / self.r, self.ceiling)
