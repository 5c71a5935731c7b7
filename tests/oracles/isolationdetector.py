"""Isolation trees, built by recursion."""

from __future__ import annotations

import math

from tests.oracles.detection import column, draw, unit


def leaf_depth(n):
    return 0.0 if n <= 1 else 1.0 if n == 2 else 2 * (math.log(n - 1) + 0.5772156649015329) - 2 * (n - 1) / n


class Isolation:
    def __init__(self, trees=64, window=256, seed=0):
        self.trees, self.window, self.seed, self.deepest = trees, window, seed, math.ceil(math.log2(window))
        self.rows, self.taken, self.built, self.forest = {}, 0, 0, []

    def score(self, x, slot):
        if not self.forest:
            return 0.0
        return sum(tree["depth"] - self.end(tree, x, 1.0) for tree in self.forest) / len(self.forest)

    def end(self, node, x, w):
        """Return w times the depth at which x ends below a node."""
        if "name" not in node or (node["name"] not in x and w < 1 / 8):
            return w * node["depth"]
        if node["name"] not in x:
            q = node["left"]
            return self.end(node["less"], x, w * q) + self.end(node["more"], x, w * (1 - q))
        return self.end(node["less" if x[node["name"]] < node["at"] else "more"], x, w)

    def learn(self, x, slot):
        self.rows[self.taken % self.window] = x  # by place in the ring
        self.taken += 1
        if self.taken % (4 if self.taken <= 2 * self.window else max(1, self.window // 8)) == 0:
            tree = self.grow(sorted(self.rows), 0, 0, slot)
            if len(self.forest) < self.trees:
                self.forest.append(tree)
            else:
                self.forest[self.built % self.trees] = tree
            self.built += 1

    def grow(self, places, number, level, slot):
        """Return the node of this number (children of i: 2 i + 1 and 2 i + 2) for these rows."""
        node = {"depth": level + leaf_depth(len(places))}
        if len(places) < 2 or level == self.deepest:
            return node
        for attempt in range(16):
            r = draw(self.seed, self.built, number * 32 + attempt)
            row = self.rows[places[(r & 0xFFFFFFFF) % len(places)]]
            if not row:
                continue
            name = sorted(row, key=slot.get)[(r >> 32) % len(row)]
            values = [self.rows[p][name] for p in places if name in self.rows[p]]
            if column(name) is None and min(values) < max(values):
                break
        else:
            return node
        low, high = min(values), max(values)
        at = low + unit(draw(self.seed, self.built, number * 32 + 16)) * (high - low)
        at = high if at <= low else at
        q = sum(v < at for v in values) / len(values)
        less, more = [], []
        for p in places:
            if name in self.rows[p]:
                left = self.rows[p][name] < at
            else:
                left = unit(draw(self.seed ^ (self.built << 20), number, p)) < q
            (less if left else more).append(p)
        node.update(name=name, at=at, left=q)
        node["less"] = self.grow(less, 2 * number + 1, level + 1, slot)
        node["more"] = self.grow(more, 2 * number + 2, level + 1, slot)
        node["depth"] = q * node["less"]["depth"] + (1 - q) * node["more"]["depth"]
        return node
