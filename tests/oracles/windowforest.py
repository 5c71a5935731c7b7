"""The forest over a window of instances, in plain Python: trees of objects, rows as dicts, every sum recomputed.

Rows map keys to values: 2 c for a number of the column with slot c, 2 c + 1 for a string, whose value is the slot of
its level (0 once that level was evicted). Slots are the engine's, so that random draws select the same entries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

MASK = 2**64 - 1
DEEPEST = 30
USUAL, SLACK, DRIFT, SPREAD, TRUSTED, FEWEST = 0.002, 0.1, 2.0, 60.0, 100, 20
SHARE, SAMPLE = 20, 250
TRIAL, LEAD_MEMORY = 500, 50
Row = dict[int, float]
LEFT, RIGHT = 0, 1
TIE = 1e-9


def add(values: Iterable[float], start: float = 0.0) -> float:
    """Sum plainly from left to right; sum() of newer Pythons is more exact."""
    for value in values:
        start += value
    return start


def mix(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Node:
    def __init__(self, counts: list[float]) -> None:
        self.counts = counts
        self.split: tuple[int, float, int, bool] | None = None  # key, value, side of absent values, presence alone
        self.gain = 0.0
        self.children: list[Node] = []

    def everyone(self) -> list[Node]:
        return [self, *[node for child in self.children for node in child.everyone()]]


def side(x: Row, split: tuple[int, float, int, bool] | None) -> int:
    """Return LEFT or RIGHT; without a split (its column was evicted) every row counts as absent."""
    assert split is not None
    key, value, absent, presence = split
    text = key % 2 == 1
    if key not in x and not (text and key - 1 in x):
        return absent
    if presence:
        return LEFT
    if text:
        return LEFT if x.get(key) == value else RIGHT
    return LEFT if x[key] <= value else RIGHT


class WindowForestOracle:
    def __init__(self, trees=10, window=10_000, columns=2.0, cuts=16, min_leaf=2, smoothing=1.0, seed=0) -> None:
        self.trees, self.window, self.columns, self.cuts = trees, window, columns, cuts
        self.min_leaf, self.smoothing, self.seed = min_leaf, smoothing, seed
        self.rows: list[tuple[Row, int, float]] = []
        self.forest: list[Node] = []
        self.earlier: list[Node] = []  # from before the last drift, on trial
        self.earlier_length = self.trial = self.revivals = 0
        self.lead = 0.0
        self.labels: list[Any] = []
        self.importance: dict[int, float] = {}
        self.grown = self.begun = self.taken = self.length = self.since = self.judged = self.falls = 0
        self.kept = window + window // trees + 1
        self.growing: Node | None = None
        self.pending: list[tuple[Node, list[tuple[Row, int, float]], int]] = []
        self.usual, self.excess = 0.0, [0.0]

    # ---------------------------------------------------------------- predicting

    def weights(self) -> list[float]:
        """Return the weight of each tree, those on trial last."""
        recent, earlier = len(self.forest), len(self.earlier)
        if not recent or not earlier:
            return [1 / (recent + earlier)] * (recent + earlier)
        odds = math.exp(self.lead)
        return [odds / (1 + odds) / recent] * recent + [1 / (1 + odds) / earlier] * earlier

    def paths(self, x: Row) -> list[list[tuple[int | None, float, list[float]]]]:
        """Return for each tree the nodes on the path: key of the split above, and probabilities by class."""
        found = []
        for node in [*self.forest, *self.earlier]:
            chance, key, path = [1 / len(self.labels)] * len(self.labels), None, []
            while True:
                total = add(node.counts, self.smoothing)
                chance = [(n + self.smoothing * p) / total for n, p in zip(node.counts, chance, strict=True)]
                path.append((key, total, chance))
                if not node.children:
                    break
                key = node.split[0] if node.split else 0
                node = node.children[side(x, node.split)]
            found.append(path)
        return found

    def probabilities(self, x: Row) -> list[float]:
        pairs = [(w, path[-1][2]) for w, path in zip(self.weights(), self.paths(x), strict=True)]
        return [add(w * leaf[c] for w, leaf in pairs) for c in range(len(self.labels))]

    def scores(self, x: Row) -> list[float]:
        return [math.log(p) for p in self.probabilities(x)]

    def explained(self, x: Row, c: int) -> dict[int, float]:
        """Return the contribution of each column's splits (by slot) to the score; the rest has the key 0."""
        paths = self.paths(x)
        parts: dict[int, float] = {}
        for w, path in zip(self.weights(), paths, strict=True):
            for (_, _, before), (key, _, after) in itertools.pairwise(path):
                parts[key // 2] = parts.get(key // 2, 0.0) + w * (after[c] - before[c])
        base = sum(w * path[0][2][c] for w, path in zip(self.weights(), paths, strict=True))
        score = self.scores(x)[c]
        added = sum(parts.values())
        scale = (score - math.log(base)) / added if abs(added) > 1e-9 * base else 1 / base
        parts = {slot: part * scale for slot, part in parts.items() if slot}
        return {0: score - sum(parts.values()), **parts}

    # ---------------------------------------------------------------- learning

    def code(self, label: Any) -> Any:
        """Return the label's number; add a new label."""
        if label not in self.labels:
            self.labels.append(label)
            for node in self.nodes():
                node.counts.append(0.0)
        return self.labels.index(label)

    def judge(self, x: Row, y: Any) -> None:
        """Record the error of the prediction, if there is one."""
        p = self.scores(x) if self.forest or self.earlier else []
        if self.forest and self.earlier:
            right = [path[-1][2][y] for path in self.paths(x)]
            n = len(self.forest)
            self.compare(1 - add(right[:n]) / n, 1 - add(right[n:]) / len(right[n:]))
        if p and len(self.labels) > 1:
            self.watch(p.index(max(p)) != y)

    def compare(self, recent: float, earlier: float) -> None:
        """Update the odds of both kinds of trees with their losses."""
        self.lead = (1 - 1 / LEAD_MEMORY) * self.lead + earlier - recent

    def count(self, node: Node, x: Row, y: Any, w: float) -> None:
        """Add a row to the nodes on its path."""
        self.join(node, y, w)
        while node.children:
            node = node.children[side(x, node.split)]
            self.join(node, y, w)

    def join(self, node: Node, y: Any, w: float) -> None:
        node.counts[y] += w

    def learn(self, x: Row, label: Any, w: float) -> None:
        y = self.code(label)
        idle = self.growing is None
        there = [*self.forest, *self.earlier]
        self.judge(x, y)
        for node in there:
            self.count(node, x, y, w)
        if self.growing and self.taken - self.kept >= self.end - self.grown_on:
            self.work(10**9)
        self.rows = [*self.rows, (x, y, w)][-self.kept :]
        self.taken += 1
        self.length = min(self.length + 1, self.window)
        self.since += 1
        if idle and self.since * (self.trees + 1) >= self.length:
            self.begin()
        if self.growing:
            self.work(SHARE * self.trees)
        self.trial += bool(self.earlier)
        if self.earlier and self.trial >= TRIAL and self.forest:
            if self.lead < 0:
                self.forest, self.grown, self.growing = self.earlier, len(self.earlier), None
                self.length = min(self.earlier_length + self.trial, self.window)
                self.revivals += 1
            self.earlier = []

    def variance(self, loss: float, rate: float) -> float:
        return self.usual * (1 - self.usual)

    def watch(self, loss: float) -> None:
        """Update the CUSUM of the losses."""
        self.judged += 1
        self.excess.append(self.excess[-1] + loss - self.usual - SLACK)
        if self.excess[-1] <= 0:
            self.excess = [0.0]
        rate = max(USUAL, 1 / self.judged)
        self.usual += rate * (loss - self.usual)
        variance = self.variance(loss, rate)
        if self.judged > TRUSTED and self.excess[-1] > DRIFT + SPREAD * variance:
            if not self.earlier:
                self.earlier, self.forest, self.grown = self.forest, [], 0
                self.earlier_length, self.trial, self.lead = self.length, 0, 0.0
            self.length = min(self.length, max(len(self.excess) - 1, FEWEST) - 1)
            self.judged, self.excess = 0, [0.0]
            self.growing = None
            self.falls += 1

    def forget(self, key: int, level: int | None) -> None:
        """Remove a key from rows and splits, or one level of a string column."""
        for x, _, _ in self.rows:
            if level is None:
                x.pop(key, None)
            elif x.get(key) == level:
                x[key] = 0
        for node in self.nodes():
            if node.split and node.split[0] == key and level in (None, node.split[1]):
                node.split = (0, 0.0, node.split[2], False)
        self.importance.pop(key // 2 if level is None else level, None)

    # ---------------------------------------------------------------- growing

    def pick(self, n: int) -> int:
        self.draws += 1
        return mix(mix(mix(self.seed) ^ self.begun) ^ self.draws) % n

    def nodes(self) -> list[Node]:
        roots = [*self.forest, *self.earlier, *([self.growing] if self.growing else [])]
        return [node for root in roots for node in root.everyone()]

    def begin(self) -> None:
        """Start a tree over the last rows; `pending` holds its unprocessed nodes, the next one last."""
        self.draws, self.since, self.credit = 0, 0, 0
        self.begun += 1
        self.importance = {slot: part * (1 - 1 / self.trees) for slot, part in self.importance.items()}
        rows = self.rows[-self.length :]
        self.end, self.grown_on = self.taken, len(rows)
        self.weight = add(w for _, _, w in rows)
        self.growing = self.new_node()
        self.pending = [(self.growing, rows, 0)]

    def work(self, rows: int) -> None:
        """Process nodes within the budget of rows; a finished tree replaces the oldest."""
        self.credit += rows
        while self.pending and self.credit > 0:
            node, here, depth = self.pending.pop()
            self.credit -= len(here)
            self.grow(node, here, depth)
        if self.pending:
            return
        for x, y, w in self.rows[len(self.rows) - (self.taken - self.end) :]:
            self.count(self.growing, x, y, w)
        place = self.grown % self.trees
        self.forest[place : place + 1] = [self.growing]
        self.growing = None
        self.grown += 1

    def counted(self, rows: list[tuple[Row, int, float]]) -> list[float]:
        return [sum(w for _, y, w in rows if y == c) for c in range(len(self.labels))]

    def fewest(self) -> int:
        return max(self.min_leaf, len(self.labels) // 16)

    def new_node(self) -> Node:
        return Node([0.0] * len(self.labels))

    def differ(self, rows: list[tuple[Row, Any, float]], counts: list[float]) -> bool:
        """Return whether there is more than one label."""
        return sum(n > 0 for n in counts) > 1

    def tie(self, rows: list[tuple[Row, Any, float]], total: list[float]) -> float:
        """Return the unit of TIE, the margin by which one gain must exceed another."""
        return add(total)

    def worth(self, gain: float) -> float:
        """Return the importance of a gain."""
        return gain / self.weight

    def grow(self, node: Node, rows: list[tuple[Row, int, float]], depth: int) -> None:
        node.counts = self.counted(rows)
        mixed = self.differ(rows, node.counts) and depth < DEEPEST
        found = self.best_split(rows, node.counts) if mixed and len(rows) >= 2 * self.fewest() else None
        if found is None or not self.allowed(rows, found[1], self.fewest()):
            return
        gain, node.split = found
        key, value, _, presence = node.split
        slot = key // 2 if presence or key % 2 == 0 else int(value)
        self.importance[slot] = self.importance.get(slot, 0.0) + self.worth(gain) / self.trees
        node.children = [self.new_node() for _ in (LEFT, RIGHT)]
        for where in (RIGHT, LEFT):
            here = [row for row in rows if side(row[0], node.split) == where]
            self.pending.append((node.children[where], here, depth + 1))

    def best_split(self, rows, total) -> tuple[float, tuple[int, float, int, bool]] | None:
        n, enough = len(rows), self.fewest()
        if n > SAMPLE:
            enough = min(enough, max(2, enough * SAMPLE // n))
            rows = [rows[i * n // SAMPLE] for i in range(SAMPLE)]
            total = self.counted(rows)
        wanted = int(min(64, self.columns * math.sqrt(len(rows[self.pick(len(rows))][0])) + 1))
        tried: set[int] = set()
        best, useful = (0.0, None), 0
        for _ in range(3 * wanted):
            if useful >= wanted or len(tried) == 64 or (n == 2 and best[1]):
                break
            x = rows[self.pick(len(rows))][0]
            if not x:
                continue
            key = sorted(x)[self.pick(len(x))]
            if key in tried:
                continue
            tried.add(key)
            possible = [s for s in self.splits(rows, key) if self.allowed(rows, s, enough)]
            useful += bool(possible)
            for split in possible:
                gain = self.gain(rows, split, total)
                if gain > best[0] + TIE * self.tie(rows, total):
                    best = (gain, split)
        return (best[0] * max(1.0, n / SAMPLE), best[1]) if best[1] else None

    def splits(self, rows, key) -> list[tuple[int, float, int, bool]]:
        """Return the splits tried on a column, in order."""
        few = 2 * len(rows) <= self.cuts
        drawn = [x for x, _, _ in rows] if few else [rows[self.pick(len(rows))][0] for _ in range(self.cuts)]
        values = sorted({x[key] for x in drawn if key in x and not (key % 2 and x[key] == 0)})
        if key % 2 == 0:
            values = [a + 0.5 * (b - a) for a, b in itertools.pairwise(values)]
        here = [key in x or (key % 2 == 1 and key - 1 in x) for x, _, _ in rows]
        if all(here):
            left = [sum(side(x, (key, v, LEFT, False)) == LEFT for x, _, _ in rows) for v in values]
            return [(key, v, LEFT if 2 * n >= len(rows) else RIGHT, False) for v, n in zip(values, left, strict=True)]
        ways = [(key, v, absent, False) for v in values for absent in (RIGHT, LEFT)]
        return [(key, 0.0, RIGHT, True), *ways]

    def allowed(self, rows, split, enough) -> bool:
        right = sum(side(x, split) for x, _, _ in rows)
        return enough <= right <= len(rows) - enough

    def gain(self, rows, split, total) -> float:
        """Return the decrease of Gini impurity, times the weight."""
        right = self.counted([row for row in rows if side(row[0], split) == RIGHT])
        parts = [t - r for t, r in zip(total, right, strict=True)], right
        return sum(sum(n * n for n in part) / sum(part) for part in parts) - sum(n * n for n in total) / sum(total)
