"""Anomaly detectors written out: plain lists, full matrices, recursive trees.

Each has ``score(x)`` and ``learn(x)``; x maps names to values, the string value v of a column f as ``f=v``. `slot` maps
known names to their slots: sums, rows and random choices are in the order of slots.
"""

from __future__ import annotations

import math

import numpy as np

from tests.oracles.copula import PlainMarginal


def column(name):
    """Return the column of an indicator `f=v`, None for the name of a number."""
    return name.partition("=")[0] if isinstance(name, str) and "=" in name else None


class RecentScores:
    def __init__(self, most=1000):
        self.most, self.scores = most, []

    def beyond(self, score):
        larger = sum(s > score for s in self.scores) + 0.5 * sum(s == score for s in self.scores)
        return (larger + 0.5) / (len(self.scores) + 1)

    def keep(self, score):
        self.scores = [*self.scores, score][-self.most :]


class Alarms:
    """P-values: the smallest rate whose level is at least the conformal p-value, interpolated."""

    rates = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

    def __init__(self):
        self.recent, self.levels = RecentScores(), list(self.rates)

    def p_value(self, score):
        scores = self.recent.scores
        if not scores:
            return 1.0
        share = (sum(s >= score for s in scores) + 1) / (len(scores) + 1)
        xs, ys = [0.0], [0.0]
        for rate, level in zip(self.rates, self.levels, strict=True):
            if share <= level:
                return ys[-1] + (rate - ys[-1]) * (share - xs[-1]) / (level - xs[-1])
            xs.append(max(xs[-1], level))
            ys.append(rate)
        return ys[-1] + (1 - ys[-1]) * (share - xs[-1]) / (1 - xs[-1]) if xs[-1] < share < 1 else 1.0

    def observe(self, score):
        if self.recent.scores:
            p = self.p_value(score)
            self.levels = [
                max(level + rate / 5 * (rate - (p <= rate)), 0.002 if rate > 0.002 else -1.0)
                for level, rate in zip(self.levels, self.rates, strict=True)
            ]
        self.recent.keep(score)


class Tail:
    def __init__(self, window=250):
        self.window, self.values, self.count, self.mean = window, {}, {}, {}

    def surprise(self, name, value):
        if not self.count.get(name):
            return None
        if column(name) is not None:
            return -math.log((self.count[name] + 1) / (self.count[column(name)] + 1))
        past = self.values[name]
        tail = min(sum(v <= value for v in past), sum(v >= value for v in past))
        return -math.log((tail + 1) / (len(past) + 1))

    def score(self, x, slot):
        parts = []
        for name in sorted(x, key=slot.get):
            s = self.surprise(name, x[name])
            if s is not None:
                parts.append(s - self.mean.get(column(name) or name, 0.0))
        return sum(parts) / math.sqrt(len(parts)) if parts else 0.0

    def learn(self, x, slot):
        for name in sorted(x, key=slot.get):
            s, owner = self.surprise(name, x[name]), column(name) or name
            self.count[name] = self.count.get(name, 0) + 1
            if column(name) is not None:
                self.count[owner] = self.count.get(owner, 0) + 1
            else:
                self.values[name] = [*self.values.get(name, []), x[name]][-self.window :]
            if s is not None:
                mean = self.mean.get(owner, 0.0)
                self.mean[owner] = mean + (s - mean) * max(1 / self.count[owner], 0.001)


class Copula:
    def __init__(self, window=200):
        self.window, self.marginals, self.moment, self.pairs = window, {}, {}, {}

    def placed(self, x, slot):
        names = [name for name in sorted(x, key=slot.get) if column(name) is None]
        for name in names:
            self.marginals.setdefault(name, PlainMarginal(self.window, 14))
        return {name: self.marginals[name].place(x[name])[0] for name in names}

    def score(self, x, slot):
        z = {name: v for name, v in self.placed(x, slot).items() if self.pairs.get((name, name), 0) >= 2}
        names = list(z)
        n = len(names)
        if n == 0:
            return 0.0
        scale = np.array([self.moment[a, a] ** -0.5 if self.moment[a, a] > 1e-12 else 0.0 for a in names])
        R = np.zeros((n, n))
        for i, a in enumerate(names):
            for j, b in enumerate(names[:i]):
                both = self.pairs.get((a, b), 0)
                R[i, j] = R[j, i] = self.moment.get((a, b), 0.0) * scale[i] * scale[j] * both / (both + n + 5)
        np.fill_diagonal(R, 1.05)
        for i in range(1, n):  # shrink a row until the variance that the features before it leave is at least .04
            explained = R[i, :i] @ np.linalg.solve(R[:i, :i], R[i, :i])
            if 1.05 - explained < 0.04:
                R[i, :i] *= math.sqrt(1.01 / explained)
                R[:i, i] = R[i, :i]
        v = np.array(list(z.values())) * scale
        return (v @ np.linalg.solve(R, v) - n) / math.sqrt(2 * n)

    def learn(self, x, slot):
        z = self.placed(x, slot)
        for a in z:
            for b in z:
                if slot[b] <= slot[a]:
                    self.pairs[a, b] = self.pairs.get((a, b), 0) + 1
                    mean = self.moment.get((a, b), 0.0)
                    self.moment[a, b] = mean + (z[a] * z[b] - mean) * max(1 / self.pairs[a, b], 0.0002)
        for name in z:
            self.marginals[name].commit(x[name])


class Neighbours:
    def __init__(self, k=20, window=300):
        self.k, self.window, self.rows, self.values = k, window, [], {}

    def scaled(self, x):
        """Standardise each value by statistics that include it, within 8 deviations."""
        out = {}
        for name, value in x.items():
            past = np.array([*self.values.get(name, []), value])
            if column(name) is None:
                sd = past.std()
                ok = sd > 1e-12 * max(1.0, abs(past.mean()))
                value = float(np.clip((value - past.mean()) / sd, -8, 8)) if ok else 0.0
            out[name] = value
        return out

    def score(self, x, slot):
        z = self.scaled(x)
        shares = {name: sum(name in row for row in self.rows) for name in z}
        compared = [name for name in z if shares[name] > 0.1 * len(self.rows)]
        if not compared:
            return 0.0
        far = sorted(
            sum((z[name] - row[name]) ** 2 if name in row else 2.0 for name in compared) / len(compared)
            for row in self.rows
        )[: self.k]
        return sum(far) / len(far)

    def learn(self, x, slot):
        z = self.scaled(x)
        for name, value in x.items():
            self.values.setdefault(name, []).append(value)
        self.rows = [*self.rows, z][-self.window :]


MASK = (1 << 64) - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(seed, a, b):
    return mix(mix(mix(seed) ^ a) ^ b)


def unit(z):
    return (z >> 11) / 2**53


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


class Auto:
    def __init__(self, seed=0):
        self.experts = [Tail(), Copula(), Neighbours(10), Isolation(32, seed=seed)]
        self.recent = [RecentScores() for _ in self.experts]
        self.losses = {True: [], False: []}  # by kind of label, one list of losses per label

    def score(self, x, slot):
        self.scores = [expert.score(x, slot) for expert in self.experts]
        return float(-self.weights() @ np.log(self.shares()))

    def shares(self):
        return np.array([r.beyond(s) if r.scores else 1.0 for r, s in zip(self.recent, self.scores, strict=True)])

    def label(self, x, slot, anomaly):
        self.score(x, slot)
        shares = self.shares()
        self.losses[anomaly].append(shares if anomaly else 1 - shares)

    def weights(self):
        """Return the prior weights times exp(-4 n (loss - least loss)), where labels fade by .01 within their kind."""
        weights = np.array([1.0, 0.5, 2.0, 1.0])
        if all(self.losses.values()):
            means, counts = [], []
            for losses in self.losses.values():
                age = 0.99 ** np.arange(len(losses))[::-1]
                counts.append(age.sum())
                means.append(age @ np.array(losses) / age.sum())
            loss = np.mean(means, axis=0)
            weights = weights * np.exp(-4 * min(counts) * (loss - loss.min()))
        return weights / weights.sum()

    def learn(self, x, slot):
        self.score(x, slot)
        for expert, recent, score in zip(self.experts, self.recent, self.scores, strict=True):
            recent.keep(score)
            expert.learn(x, slot)


class Presence:
    def __init__(self, forget=0.01):
        self.forget, self.count, self.rate = forget, {}, {}

    def score(self, x, slot):
        here = {column(name) or name for name in x}
        total, variance = 0.0, 1.0
        for name in self.count:
            r = min(max(self.rate[name], 1e-4), 1 - 1e-4)
            surprise = {True: -math.log(r), False: -math.log(1 - r)}
            mean = r * surprise[True] + (1 - r) * surprise[False]
            total += surprise[name in here] - mean
            variance += r * (surprise[True] - mean) ** 2 + (1 - r) * (surprise[False] - mean) ** 2
        return total / math.sqrt(variance)

    def learn(self, x, slot):
        here = {column(name) or name for name in x}
        for name in here | set(self.count):
            self.count[name] = self.count.get(name, 0) + 1
            rate = self.rate.get(name, 0.5)
            self.rate[name] = rate + ((name in here) - rate) * max(1 / (self.count[name] + 1), self.forget)


class Projected:
    """Projections of standardised values with weights -1, 0 and 1."""

    def __init__(self, projections, seed):
        self.projections, self.seed, self.scaler = projections, seed, Neighbours()

    def terms(self, x, slot, fresh=()):
        """Return by projection the values that it sums, with their signs."""
        z = self.scaler.scaled(x)
        sign = {0: 1.0, 1: -1.0}
        return [
            [sign[r] * z[f] for f in x if f not in fresh and (r := draw(self.seed, k, slot[f]) % 6) < 2]
            for k in range(self.projections)
        ]

    def seen(self, x):
        """Add an instance to the statistics; return its features that are new."""
        fresh = {name for name in x if name not in self.scaler.values}
        for name, value in x.items():
            self.scaler.values.setdefault(name, []).append(value)
        return fresh


class LODA(Projected):
    def __init__(self, projections=50, seed=0):
        super().__init__(projections, seed)
        self.mass, self.total = np.zeros((projections, 66)), np.zeros(projections)

    def bins(self, x, slot, fresh=()):
        out = []
        for terms in self.terms(x, slot, fresh):
            z = math.floor(4 * sum(terms) / math.sqrt(len(terms))) if terms else None
            out.append(None if z is None else 0 if z < -32 else 65 if z >= 32 else z + 33)
        return out

    def score(self, x, slot):
        parts = [
            -math.log((self.mass[k, b] + 0.5) / (self.total[k] + 33))
            for k, b in enumerate(self.bins(x, slot))
            if b is not None and self.total[k] > 0
        ]
        return sum(parts) / len(parts) if parts else 0.0

    def learn(self, x, slot):
        fresh = {name for name in x if name not in self.scaler.values}
        for k, b in enumerate(self.bins(x, slot, fresh)):
            if b is not None:
                self.mass[k] *= 0.9995
                self.mass[k, b] += 1
                self.total[k] = 0.9995 * self.total[k] + 1
        self.seen(x)


class XStream(Projected):
    def __init__(self, projections=50, chains=25, depth=10, window=250, cells=256, seed=0):
        super().__init__(projections, seed)
        self.chains, self.depth, self.window, self.cells, self.learned = chains, depth, window, cells, 0
        self.width, self.old_width = np.ones(projections), np.ones(projections)
        self.count, self.old_count, self.sketches = {}, {}, []

    def path(self, sketch, width, chain):
        """Return the cells of an instance, by level."""
        z, key, out = {}, chain, []
        for level in range(self.depth):
            k = draw(self.seed ^ 1, chain, level) % self.projections
            shift = unit(draw(self.seed ^ 2, chain, k))
            z[k] = 2 * z[k] - shift if k in z else sketch[k] / width[k] + shift
            key = mix(key ^ (math.floor(min(max(z[k], -1e9), 1e9)) & MASK))
            out.append((chain, level, key % self.cells))
        return out

    def score(self, x, slot):
        if self.learned == 0:
            return 0.0
        first = self.learned < self.window
        count, width = (self.count, self.width) if first else (self.old_count, self.old_width)
        sketch = [sum(terms) for terms in self.terms(x, slot)]
        least = [
            min(math.log2(1 + count.get(cell, 0)) + cell[1] + 1 for cell in self.path(sketch, width, chain))
            for chain in range(self.chains)
        ]
        return math.log2(1 + min(self.learned, self.window)) + 1 - sum(least) / self.chains

    def learn(self, x, slot):
        if self.learned and self.learned % self.window == 0:
            self.old_count, self.old_width, self.count = self.count, self.width, {}
            squares = np.square(self.sketches).mean(axis=0)
            self.width, self.sketches = np.maximum(2 * np.sqrt(squares), 1e-3), []
        fresh = {name for name in x if name not in self.scaler.values}
        sketch = [sum(terms) for terms in self.terms(x, slot, fresh)]
        self.sketches.append(sketch)
        for chain in range(self.chains):
            for cell in self.path(sketch, self.width, chain):
                self.count[cell] = self.count.get(cell, 0) + 1
        self.seen(x)
        self.learned += 1


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
