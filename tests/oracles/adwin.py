"""ADWIN from the numbers themselves: the window is a list of buckets, each the list of its numbers."""

import math


class Adwin:
    def __init__(self, delta=0.002, clock=32, min_part=5, grace=10, most=5):
        self.delta, self.clock, self.part, self.grace, self.most = delta, clock, min_part, grace, most
        self.buckets = []  # oldest first; sizes are powers of two that never rise
        self.updates = 0

    def numbers(self):
        return [x for bucket in self.buckets for x in bucket]

    def merge(self):
        """Merge the two oldest buckets of a size if there are more than `most`; then go on to twice that size."""
        size = 1
        while True:
            same = [i for i, bucket in enumerate(self.buckets) if len(bucket) == size]
            if len(same) <= self.most:
                return
            first = same[0]
            self.buckets[first : first + 2] = [self.buckets[first] + self.buckets[first + 1]]
            size *= 2

    def split(self):
        """Return how many buckets the older part has at the cut that exceeds the bound most; 0 if there is none."""
        window = self.numbers()
        mean = sum(window) / len(window)
        variance = sum((x - mean) ** 2 for x in window) / len(window)
        odds = math.log(2 * math.log(len(window)) / self.delta)
        best, found = 0.0, 0
        for cut in range(1, len(self.buckets)):
            older = [x for bucket in self.buckets[:cut] for x in bucket]
            newer = [x for bucket in self.buckets[cut:] for x in bucket]
            if len(older) < self.part or len(newer) < self.part:
                continue
            m = 1 / (1 / len(older) + 1 / len(newer))
            bound = math.sqrt(2 / m * variance * odds) + 2 / (3 * m) * odds
            excess = abs(sum(older) / len(older) - sum(newer) / len(newer)) - bound
            if excess > best:
                best, found = excess, cut
        return found

    def update(self, x):
        """Add a number and return whether the window was cut."""
        self.buckets.append([x])
        self.merge()
        self.updates += 1
        cut = False
        while self.updates % self.clock == 0 and sum(map(len, self.buckets)) > self.grace:
            older = self.split()
            if older == 0:
                break
            del self.buckets[:older]
            cut = True
        return cut
