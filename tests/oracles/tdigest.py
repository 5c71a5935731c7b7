"""The merging t-digest as lists: centroids [value, weight, point?], merged when 32 values wait or at a query."""

from __future__ import annotations

import math


class DigestOracle:
    def __init__(self, compression: float = 100.0) -> None:
        self.compression = compression
        self.centroids: list[list] = []
        self.waiting: list[list] = []
        self.total = 0.0
        self.lo = math.inf
        self.hi = -math.inf

    def add(self, x: float, w: float = 1.0) -> None:
        self.waiting.append([x, w, True])
        self.total += w
        self.lo, self.hi = min(self.lo, x), max(self.hi, x)
        if len(self.waiting) == 32:
            self.flush()

    def flush(self) -> None:
        merged: list[list] = []
        if not self.waiting:
            return
        for x, w, point in sorted(self.centroids + self.waiting, key=lambda c: c[0]):
            if merged and merged[-1][0] == x:
                merged[-1] = [x, merged[-1][1] + w, merged[-1][2] and point]
            else:
                merged.append([x, w, point])
        self.waiting = []
        self.centroids = merged if len(merged) <= self.compression + 32 else self.compressed(merged)

    def compressed(self, centroids: list[list]) -> list[list]:
        """Merge neighbours while their centroid spans at most one unit of k1(q) = δ/(2π) asin(2q - 1)."""
        out = [list(centroids[0])]
        before = 0.0
        for x, w, point in centroids[1:]:
            last = out[-1]
            k = self.compression / (2 * math.pi) * math.asin(min(1.0, 2 * before / self.total - 1))
            angle = (k + 1) * 2 * math.pi / self.compression
            end = self.total if angle >= math.pi / 2 else self.total * (math.sin(angle) + 1) / 2
            if before + last[1] + w <= end:
                last[0] += (x - last[0]) * w / (last[1] + w)
                last[1] += w
                last[2] = False
            else:
                before += last[1]
                out.append([x, w, point])
        return out

    def below(self, x: float) -> float:
        """Return the weight below x; half of a mixed centroid's weight is on either side, up to the next mixed one."""
        self.flush()
        if not self.centroids or x <= self.lo:
            return 0.0
        if x > self.hi:
            return self.total
        weight = sum(w for at, w, point in self.centroids if point and at < x)
        mixed = [(at, w) for at, w, point in self.centroids if not point]
        ends = [self.lo, *(at for at, _ in mixed), self.hi]
        for (at, w), left, right in zip(mixed, ends, ends[2:], strict=False):
            weight += w / 2 * (share(x, left, at) + share(x, at, right))
        return weight

    def at(self, weight: float) -> float:
        """Return the smallest value with this weight at or below it, by bisection on `below`."""
        self.flush()
        low, high = self.lo, self.hi
        if self.below(high) <= weight:
            return high
        for _ in range(200):
            middle = low + (high - low) / 2
            if not low < middle < high:
                break
            if self.below(middle) > weight:
                high = middle
            else:
                low = middle
        return low


def share(x: float, a: float, b: float) -> float:
    if x >= b:
        return 1.0
    return 0.0 if x <= a else (x - a) / (b - a)
