"""Pairs of features in ORF3V: grids as dicts, every gain kept, trials and votes decided from those lists."""

from __future__ import annotations

import itertools
import math

BINS, TRIAL, SETTLED, SHRINK, START, TIE = 4, 100, 30, 8.0, 0.5, 1e-12


class PairOracle:
    def __init__(self, a: int, b: int, edges: tuple[list[float], list[float]]) -> None:
        self.slots, self.edges = (a, b), edges
        self.counts: dict[tuple[int, int, int], float] = {}
        self.gains: list[tuple[float, float]] = []  # (rate, gain)
        self.seen, self.factor, self.certainty, self.stale = 0, START, 1.0, False

    def cell(self, values: dict[int, float]) -> tuple[int, int] | None:
        if not all(slot in values for slot in self.slots):
            return None
        i, j = (sum(values[slot] > edge for edge in edges) for slot, edges in zip(self.slots, self.edges, strict=True))
        return i, j

    def count(self, c: int, i: int | None = None, j: int | None = None) -> float:
        return sum(
            n for (k, m, label), n in self.counts.items() if label == c and i in (None, k) and j in (None, m)
        )  # fmt: skip

    def lifts(self, cell: tuple[int, int], mass: list[float]) -> list[float]:
        """Return log P(c | cell) / Q(c); 0 for a label not yet learned."""
        i, j = cell
        known = [c for c, m in enumerate(mass) if m > 0]
        n = [sum(self.count(c, *at) for c in known) for at in ((None, None), (i, None), (None, j), (i, j))]
        prior = {c: (self.count(c) + mass[c] / sum(mass)) / (n[0] + 1) for c in known}
        first = {c: (self.count(c, i) + prior[c]) / (n[1] + 1) for c in known}
        second = {c: (self.count(c, None, j) + prior[c]) / (n[2] + 1) for c in known}
        naive = {c: first[c] * second[c] / prior[c] for c in known}
        q = {c: v / sum(naive.values()) for c, v in naive.items()}
        p = {c: (self.count(c, i, j) + SHRINK * q[c]) / (n[3] + SHRINK) for c in known}
        return [math.log(p[c] / q[c]) if c in p else 0.0 for c in range(len(mass))]

    def regrid(self, digests) -> None:
        """Move the edges to the current quartiles, after 1, 2, 4, ... trial lengths; redistribute bins by overlap."""
        shares, edges = [], []
        for old, held in zip(self.edges, digests, strict=True):
            new = quartiles(held)
            total = sum(d.total for d in held)
            bounds = [
                [0.0, *(sum(d.below(math.nextafter(e, math.inf)) for d in held) / total for e in side), 1.0]
                for side in (old, new)
            ]
            shares.append([spread(i, old, new, *bounds) for i in range(BINS)])
            edges.append(new)
        counts: dict[tuple[int, int, int], float] = {}
        for (i, j, c), n in self.counts.items():
            for k, a in enumerate(shares[0][i]):
                for m, b in enumerate(shares[1][j]):
                    counts[k, m, c] = counts.get((k, m, c), 0.0) + n * a * b
        self.edges, self.counts = tuple(edges), counts

    def mean(self, power: int = 1) -> float:
        top = bottom = 0.0
        for a, gain in self.gains:
            top, bottom = (top + a * gain**power) / (1 + a), (bottom + a) / (1 + a)
        return top / bottom if bottom else 0.0

    def worth(self, alpha: float) -> float:
        variance = max(self.mean(2) - self.mean() ** 2, 0.0)
        return self.mean() - math.sqrt(variance / min(self.seen, 2 / alpha))


class PairsOracle:
    def __init__(self, limit: int, alpha: float) -> None:
        self.limit, self.alpha = limit, alpha
        self.voting: list[PairOracle | None] = [None] * limit
        self.trials: list[PairOracle | None] = [None] * limit

    def cells_of(self, places, values) -> list[tuple[int, PairOracle, tuple[int, int]]]:
        cells = [(p, pair, pair.cell(values)) for p, pair in enumerate(places) if pair is not None]
        return [(p, pair, cell) for p, pair, cell in cells if cell is not None]

    def votes(self, values, mass) -> list[float]:
        out = [0.0] * len(mass)
        for _, pair, cell in self.cells_of(self.voting, values):
            out = [v + pair.factor * lift for v, lift in zip(out, pair.lifts(cell, mass), strict=True)]
        return out

    def judge(self, values, mass, probabilities, y, w, tempered) -> None:
        """Update trials and votes by one label; `probabilities` is the prediction with all votes."""
        for places, sign in ((self.voting, -1), (self.trials, 1)):
            for _, pair, cell in self.cells_of(places, values):
                lift = pair.lifts(cell, mass)
                other = sum(p * math.exp(sign * pair.factor * v) for p, v in zip(probabilities, lift, strict=True))
                pair.gains.append((self.alpha * w, pair.factor * lift[y] - sign * math.log(other)))
                if tempered and places is self.voting:
                    mean = sum(p * v for p, v in zip(probabilities, lift, strict=True))
                    square = sum(p * v * v for p, v in zip(probabilities, lift, strict=True))
                    pair.certainty += w * (square - mean**2)
                    pair.factor = min(max(pair.factor + w * (lift[y] - mean) / pair.certainty, 0.0), 1.0)

    def absorb(self, values, y, w) -> None:
        for places in (self.voting, self.trials):
            for _, pair, cell in self.cells_of(places, values):
                pair.counts[*cell, y] = pair.counts.get((*cell, y), 0.0) + w
                pair.seen += 1
                pair.stale = pair.seen in (TRIAL * 2**k for k in range(40))

    def decide(self, values) -> None:
        for p, pair, _ in self.cells_of(self.voting, values):
            if pair.seen % TRIAL == 0 and pair.mean() < -TIE:
                self.voting[p] = None
        for p, pair, _ in self.cells_of(self.trials, values):
            if pair.seen == TRIAL // 2 and pair.mean() < -TIE:
                self.trials[p] = None
            elif pair.seen >= TRIAL:
                worth = [0.0 if held is None else held.worth(self.alpha) for held in self.voting]
                least = 0
                for q, held in enumerate(worth):
                    least = q if held < worth[least] - TIE else least
                if pair.worth(self.alpha) > max(worth[least], 0.0) + TIE:
                    self.voting[least] = pair
                self.trials[p] = None

    def leave(self, slot: int) -> None:
        for places in (self.voting, self.trials):
            places[:] = [None if pair is not None and slot in pair.slots else pair for pair in places]


def spread(i, old, new, before, after) -> list[float]:
    """Return the share of old bin i in each new bin, by the share of values up to the edges."""
    width = before[i + 1] - before[i]
    if width > 0:
        ends = itertools.pairwise(after)
        return [max(0.0, min(before[i + 1], high) - max(before[i], low)) / width for low, high in ends]
    at = sum(old[i] > edge for edge in new) if i < BINS - 1 else BINS - 1
    return [float(j == at) for j in range(BINS)]


def quartiles(digests) -> list[float] | None:
    """Return the edges of the bins from all centroids; None if all values are equal."""
    for digest in digests:
        digest.flush()
    points = sorted((at, w) for digest in digests for at, w, _ in digest.centroids)
    total = sum(digest.total for digest in digests)
    lower = [at for at, _ in points if at < points[-1][0]]
    if not lower:
        return None
    edges = []
    for k in range(1, BINS):
        upto, edge = 0.0, points[-1][0]
        for at, w in points:
            upto += w
            if upto >= total * k / BINS:
                edge = at
                break
        edges.append(min(edge, lower[-1]))
    return edges
