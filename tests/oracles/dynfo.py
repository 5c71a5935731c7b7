"""The dynamic forest in plain Python: stumps as objects, rows as in `by_column`, every sum recomputed."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

from tests.oracles.by_column import Row

MASK = 2**64 - 1
TIE = 1e-9
Kept = tuple[Row, Any, float]


def mix(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(seed: int, a: int, b: int) -> int:
    return mix(mix(mix(seed) ^ a) ^ b)


def by_label(rows: list[Kept]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for _, y, w in rows:
        found[y] = found.get(y, 0.0) + w
    return found


def purity(rows: list[Kept]) -> float:
    """Return the weight of the rows minus their Gini impurity times that weight."""
    return sum(w * w for w in by_label(rows).values()) / sum(w for *_, w in rows)


class PlainStump:
    def __init__(self, key: int, rows: list[Kept]) -> None:
        """Find the best split of the key on the rows that have it."""
        self.key, self.weight, self.gain = key, 1.0, 0.0
        rows = [row for row in rows if key in row[0]]
        values = sorted({x[key] for x, *_ in rows})
        between = [((a + b) / 2, a, b) for a, b in itertools.pairwise(values)]
        cuts = [value for value in values if value] if key % 2 else [m if m < b else a for m, a, b in between]
        self.at = values[-1]
        for cut in cuts:
            left, right = self.parts(rows, cut)
            if right:
                gain = purity(left) + purity(right) - purity(rows)
                if gain > self.gain + TIE * sum(w for *_, w in rows):
                    self.gain, self.at = gain, cut
        left, right = self.parts(rows, self.at)
        self.shares = []
        for side in (left, right or rows):
            total = sum(w for *_, w in side)
            self.shares.append({label: w / total for label, w in by_label(side).items()})

    def is_left(self, value: float, at: float) -> bool:
        return value == at if self.key % 2 else value <= at

    def parts(self, rows: list[Kept], at: float) -> tuple[list[Kept], list[Kept]]:
        left = [row for row in rows if self.is_left(row[0][self.key], at)]
        return left, [row for row in rows if not self.is_left(row[0][self.key], at)]

    def vote(self, x: Row) -> dict[Any, float] | None:
        if self.key not in x:
            return None
        return self.shares[0 if self.is_left(x[self.key], self.at) else 1]


class PlainDynFo:
    def __init__(self, M=100, N=200, alpha=0.1, beta=0.8, delta=0.2, epsilon=0.001, gamma=0.7, **more) -> None:
        self.M, self.N, self.alpha, self.beta, self.delta = M, N, alpha, beta, delta
        self.epsilon, self.gamma = epsilon, gamma
        self.theta1, self.theta2, self.seed = more.get("theta1", 0.05), more.get("theta2", 0.6), more.get("seed", 0)
        self.draws = more.get("max_draws", 10) or 10**9
        self.labels: list[Any] = []
        self.counts: dict[Any, float] = {}
        self.rows: list[Kept] = []
        self.wrong: list[bool] = []
        self.stumps: list[PlainStump] = []
        self.found: dict[int, PlainStump] = {}  # stump by key on the stored rows, built once per instance
        self.steps = self.taken = self.dropped = self.added = self.again = 0

    # ---------------------------------------------------------------- predicting

    def scores(self, x: Row) -> list[float] | None:
        if not x:
            return None
        votes = [(stump.weight, stump.vote(x)) for stump in self.stumps]
        voting = [(w, vote) for w, vote in votes if vote is not None]
        total = sum(w for w, _ in voting)
        if not total:
            return [self.counts.get(y, 0.0) / sum(self.counts.values()) for y in self.labels]
        return [sum(w * vote.get(y, 0.0) for w, vote in voting) / total for y in self.labels]

    # ---------------------------------------------------------------- learning

    def learn(self, x: Row, y: Any, w: float) -> None:
        self.steps += 1
        if y not in self.labels:
            self.labels.append(y)
        if not x:
            return
        if self.rows:
            scores = self.scores(x)
            assert scores is not None
            self.wrong.append(scores[self.labels.index(y)] < max(scores) - TIE)
        self.counts[y] = self.counts.get(y, 0.0) + w
        self.found = {}
        self.taken += 1
        self.rows = [*self.rows, (dict(x), y, w)][-self.N :]
        alive = sorted({key for kept, *_ in self.rows for key in kept})
        self.add(alive)
        self.reweigh(x, y, w)
        self.renew(alive)

    def add(self, alive: list[int]) -> None:
        recent = self.wrong[-self.N :]
        error = sum(recent) / len(recent) if recent else 0.0
        starting = self.taken <= self.M
        if len(self.stumps) < self.M and (not self.stumps or starting or error > self.gamma):
            self.stumps.append(self.learned(alive, draw(self.seed, self.steps, self.M)))
            self.added += not starting

    def learned(self, alive: list[int], luck: int) -> PlainStump:
        """Return the best stump on the drawn keys; this shuffles `alive`."""
        drawn = []
        for i in range(min(max(1, math.floor(self.delta * len(alive) + TIE)), self.draws)):
            luck = mix(luck)
            at = i + luck % (len(alive) - i)
            alive[i], alive[at] = alive[at], alive[i]
            if alive[i] not in self.found:
                self.found[alive[i]] = PlainStump(alive[i], self.rows)
            drawn.append(copy.copy(self.found[alive[i]]))
        best = drawn[0]
        for stump in drawn[1:]:
            best = stump if stump.gain > best.gain + TIE * self.N else best
        return best

    def reweigh(self, x: Row, y: Any, w: float) -> None:
        for stump in self.stumps:
            vote = stump.vote(x)
            if vote is None:
                stump.weight -= self.epsilon * w
                continue
            chances = [vote.get(label, 0.0) for label in self.labels]
            prediction = 0
            for c in range(1, len(chances)):
                prediction = c if chances[c] > chances[prediction] + TIE else prediction
            a = self.alpha * w
            stump.weight = ((2 * a if self.labels[prediction] == y else 0.0) + stump.weight) / (1 + a)

    def renew(self, alive: list[int]) -> None:
        weights = sorted(stump.weight for stump in self.stumps)
        place = (len(weights) - 1) * self.theta2
        below, above = weights[math.floor(place)], weights[min(math.floor(place) + 1, len(weights) - 1)]
        quantile = below + (above - below) * (place - math.floor(place))
        for j, stump in enumerate(self.stumps):
            luck = draw(self.seed, self.steps, j)
            chosen = self.theta1 <= stump.weight < quantile and (luck >> 11) / 2**53 >= self.beta
            if stump.key == 0 or chosen:
                self.stumps[j] = self.learned(alive, luck)
                self.again += 1
        kept = [stump for stump in self.stumps if stump.weight >= self.theta1]
        self.dropped += len(self.stumps) - len(kept)
        self.stumps = kept

    # ---------------------------------------------------------------- evictions

    def forget(self, key: int, level: int | None) -> None:
        for x, *_ in self.rows:
            if key in x and level is None:
                del x[key]
            elif key in x and x[key] == level:
                x[key] = 0.0
        for stump in self.stumps:
            if stump.key == key and level in (None, stump.at):
                stump.key = 0

    def weight(self, key: int, level: int | None) -> float:
        return sum(stump.weight for stump in self.stumps if stump.key == key and level in (None, stump.at))
