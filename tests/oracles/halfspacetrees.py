"""Half-space trees, with nodes as paths from the root."""

from __future__ import annotations

import math

from tests.oracles.detection import column, draw, unit
from tests.oracles.neighboursdetector import Neighbours


class HalfSpace:
    """Trees drawn again for every window; windows of 8, 8, 16, 32, ... up to `window` instances.

    A tree is a dict of node -> instances, nodes being the sides taken from the root, as a tuple of 1 and 2.
    """

    def __init__(self, trees=25, depth=10, window=250, seed=0):
        self.trees, self.depth, self.window, self.seed, self.turned = trees, depth, window, seed, 0
        self.scaler, self.held, self.names, self.old_names = Neighbours(), [], [], []
        self.forest, self.old_forest = [{} for _ in range(trees)], []

    def size(self, turn):
        return min(self.window, 8 * 2 ** max(0, turn - 1))

    def split(self, turn, tree, node, names, slot):
        """Return the feature of a node and the middle of its range there."""
        name = self.split_name(turn, tree, node, names)
        if name is None:
            return None, 0.0
        u = unit(draw(self.seed ^ 1, turn * self.trees + tree, slot[name]))
        centre, reach = 3 * (2 * u - 1), 6 * 2 * max(u, 1 - u)  # of 6, the width of the usual values
        low, high = centre - reach, centre + reach
        for i, side in enumerate(node):
            if self.split_name(turn, tree, node[:i], names) == name:
                middle = (low + high) / 2
                low, high = (low, middle) if side == 1 else (middle, high)
        return name, (low + high) / 2

    def split_name(self, turn, tree, node, names):
        number = 0
        for side in node:
            number = 2 * number + side
        return names[draw(self.seed, turn * self.trees + tree, number) % len(names)]

    def mass(self, counts, node):
        """Return the instances of the window in a node, had all of them gone on to the end."""
        mass = self.size(self.turned - 1)
        for i in range(len(node)):
            both = [counts.get((*node[:i], side), 0) for side in (1, 2)]
            mass *= both[node[i] - 1] / sum(both) if sum(both) else 0.0
        return mass

    def value(self, tree, node, x, slot, w):
        """Return the expected log2(mass + 1) + level where x ends below a node; without x, of all instances."""
        counts, turn = self.old_forest[tree], self.turned - 1
        mass, both = self.mass(counts, node), [counts.get((*node, side), 0) for side in (1, 2)]
        if len(node) == self.depth or mass < 0.1 * self.size(turn) or sum(both) == 0:
            return math.log2(mass + 1) + len(node)
        name, middle = self.split(turn, tree, node, self.old_names, slot)
        if name in x:
            return self.value(tree, (*node, 1 if x[name] < middle else 2), x, slot, w)
        if w < 1 / 8:
            x = {}
        shares = [n / sum(both) for n in both]
        return sum(
            q * self.value(tree, (*node, side), x, slot, w * q if x else 1.0)
            for side, q in zip((1, 2), shares, strict=True)
            if q > 0
        )

    def score(self, x, slot):
        if self.turned < 2:
            return 0.0
        z = self.scaler.scaled({name: v for name, v in x.items() if column(name) is None})
        means = [self.value(tree, (), {}, slot, 1.0) for tree in range(self.trees)]
        return sum(mean - self.value(tree, (), z, slot, 1.0) for tree, mean in enumerate(means)) / self.trees

    def learn(self, x, slot):
        numbers = [name for name in sorted(x, key=slot.get) if column(name) is None]
        z = self.scaler.scaled({name: x[name] for name in numbers})
        step = len(self.held)
        for tree, counts in enumerate(self.forest if self.turned else ()):
            self.count(counts, tree, step, z, slot)
        self.held.append(numbers[draw(self.seed ^ 2, self.turned, step) % len(numbers)] if numbers else None)
        for name in numbers:
            self.scaler.values.setdefault(name, []).append(x[name])
        if len(self.held) == self.size(self.turned):
            self.old_names, self.names, self.held = self.names, self.held, []
            self.old_forest, self.forest = self.forest, [{} for _ in range(self.trees)]
            self.turned += 1

    def count(self, counts, tree, step, z, slot):
        node, number = (), 0
        counts[node] = counts.get(node, 0) + 1
        while len(node) < self.depth:
            name, middle = self.split(self.turned, tree, node, self.names, slot)
            left, right = (counts.get((*node, side), 0) for side in (1, 2))
            if name in z:
                side = 1 if z[name] < middle else 2
            elif left + right == 0:
                return
            else:
                r = draw(self.seed ^ 3, self.turned * self.window + step, tree * (2 ** (self.depth + 1) - 1) + number)
                side = 1 if r % (left + right) < left else 2
            node, number = (*node, side), 2 * number + side
            counts[node] = counts.get(node, 0) + 1
