"""ORF3V by its equations: every known feature processed in every round, nothing amortised."""

from __future__ import annotations

import math

from tests.oracles.pairs import SETTLED, PairOracle, PairsOracle, quartiles
from tests.oracles.tdigest import DigestOracle

TIE = 1e-12
MASK = 2**64 - 1


def scramble(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def chance(seed: int, *numbers: int) -> float:
    z = scramble(seed)
    for number in numbers:
        z = scramble(z ^ (number & MASK))
    return (z >> 11) / 2**53


def argmax(values: list[float]) -> int:
    best = 0
    for c, value in enumerate(values):
        if value > values[best] + TIE:
            best = c
    return best


class Feature:
    """One forest, of a numeric or a string column."""

    def __init__(self, slot: int, t: int) -> None:
        self.slot, self.first, self.weight = slot, t, 1.0
        self.evidence: list[tuple[float, float]] = []  # (sample weight, log P(y) / prior(y)) of every vote
        self.rounds: list[int] = []
        self.digests: dict[int, DigestOracle] = {}
        self.numbers = self.texts = self.serial = self.refreshed = 0
        self.stumps: list[tuple[float, int]] | None = None
        self.sides: list[tuple[float, list[float], list[float]]] = []
        self.priors: list[float] = []
        self.levels: dict[str, list[float]] = {}
        self.level_priors: dict[str, list[float]] = {}


class ORF3VOracle:
    def __init__(
        self, J=10, K=10, grace=5, r=100, growth=0.05, alpha=0.002, window=200, delta=1e-6, prune="hoeffding+gap",
        replace="oldest", thresholds="uniform", vote="prior", temper=True, smoothing=1.0, compression=100.0, seed=0,
        pairs=0, update="values",
    ) -> None:  # fmt: skip
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        self.epsilon = math.sqrt(math.log(1 / delta) / (2 * window))
        self.features: dict = {}
        self.slots: dict = {}
        self.columns: dict = {}
        self.numeric: set = set()
        self.free: list[int] = []
        self.labels: list = []
        self.mass: list[float] = []
        self.t = 0
        self.b, self.certainty = 1.0, 1.0
        self.pruned = 0
        self.grids = PairsOracle(pairs, alpha)

    # predicting

    def shares(self, name, value) -> tuple[list[float], list[float]] | None:
        """Return P_i and the class prior it was built with; None if the feature does not vote."""
        f = self.features.get(name)
        if f is None:
            return None
        if isinstance(value, str):
            if f.texts < self.grace or value not in f.levels:
                return None
            counts, prior = f.levels[value], f.level_priors[value]
            n = sum(counts)
            return [(counts[c] + self.smoothing * p) / (n + self.smoothing) for c, p in enumerate(prior)], prior
        if f.stumps is None:
            return None
        sides = [above if value >= edge else below for edge, below, above in f.sides]
        return [sum(s[c] for s in sides) / len(sides) for c in range(len(f.priors))], f.priors

    def ballots(self, x) -> dict:
        """Return (weight, vote by class, favoured class) by feature."""
        out = {}
        for name, value in x.items():
            found = self.shares(name, value)
            if found is None:
                continue
            share, prior = found
            if self.vote == "paper":
                ballot = list(share)
            else:
                ballot = [math.log(max(p, TIE) / q) for p, q in zip(share, prior, strict=True)]
            ballot += [0.0] * (len(self.labels) - len(ballot))
            out[name] = (self.features[name].weight, ballot, argmax(share))
        return out

    def scores(self, x) -> list[float]:
        ballots = self.ballots(x).values()
        k = range(len(self.labels))
        evidence = [sum(w * v[c] for w, v, _ in ballots) for c in k]
        total = sum(self.mass)
        if self.vote == "paper":
            return evidence if ballots else [m / total for m in self.mass]
        votes = self.grids.votes(self.numbers(x), self.mass)
        return [math.log(self.mass[c] / total) + self.b * evidence[c] + votes[c] for c in k]

    def numbers(self, x) -> dict[int, float]:
        """Return the numbers of known features by slot."""
        return {self.slots[n]: float(v) for n, v in x.items() if n in self.slots and not isinstance(v, str)}

    def proba(self, x) -> list[float]:
        scores = self.scores(x)
        if self.vote == "prior":
            scores = [math.exp(s - max(scores)) for s in scores]
        return [s / sum(scores) for s in scores]

    # learning

    def learn(self, x, y, w=1.0) -> None:
        self.t += 1
        x = {name: float(v) if not isinstance(v, str) else v for name, v in x.items()}
        self.name_slots(x)
        if y not in self.labels:
            self.labels.append(y)
            self.mass.append(0.0)
        y = self.labels.index(y)
        self.judge(x, y, w)
        self.mass[y] += w
        for name, value in x.items():
            self.see(name)
            self.learn_level(name, value, y, w) if isinstance(value, str) else self.learn_number(name, value, y, w)
        gone = [n for n in self.features if self.vanished(self.features[n])]
        for name in gone:
            del self.features[name]
            self.pruned += 1
            self.grids.leave(self.slots[name])
        self.forget_names(gone)
        if self.update == "rounds" and self.t % self.r == 0:
            for f in self.features.values():
                if f.stumps is not None and f.numbers > f.refreshed:
                    self.renew(f)
        if self.t > 1:
            self.grids.absorb(self.numbers(x), y, w)
            self.grids.decide(self.numbers(x))
            for pair in self.grids.voting:
                if pair is not None and pair.stale:
                    pair.stale = False
                    pair.regrid([self.digests(slot) for slot in pair.slots])
            self.try_pair(x)

    def try_pair(self, x) -> None:
        """Start a trial of two of the instance's features: random, or each the most informative of three."""
        names = {self.slots[n if not isinstance(v, str) else f"{n}={v}"]: n for n, v in x.items()}
        entries = [0, *sorted(names)]
        if None not in self.grids.trials or len(entries) < 2:
            return
        times = 3 if self.t % 2 else 1
        a, b = sorted(self.drawn(entries, range(k, k + times)) for k in (0, times))
        pairs = [pair for pair in (*self.grids.voting, *self.grids.trials) if pair is not None]
        settled = all(self.by_slot(s) is not None and self.by_slot(s).numbers >= SETTLED for s in (a, b))
        if a == b or not settled or any(pair.slots == (a, b) for pair in pairs):
            return
        edges = []
        for slot in (a, b):  # a query merges a digest's buffer, so do not query the second one unnecessarily
            edges.append(quartiles(self.digests(slot)))
            if edges[-1] is None:
                return
        self.grids.trials[self.grids.trials.index(None)] = PairOracle(a, b, tuple(edges))

    def digests(self, slot) -> list[DigestOracle]:
        return [d for _, d in sorted(self.by_slot(slot).digests.items())]

    def by_slot(self, slot):
        return next((f for f in self.features.values() if f.slot == slot and f.stumps is not None), None)

    def drawn(self, entries, numbers) -> int:
        evidence = {f.slot: self.evidence(f)[0] for f in self.features.values()}
        slots = [entries[scramble(scramble(scramble(self.seed) ^ self.t) ^ k) % len(entries)] for k in numbers]
        best = slots[0]
        for slot in slots[1:]:
            best = slot if evidence.get(slot, 0.0) > evidence.get(best, 0.0) + TIE else best
        return best

    def name_slots(self, x) -> None:
        """Assign slots like the feature space: new names sorted, a column just before its first level."""
        new = sorted(
            ((f"{n}={v}", n) if isinstance(v, str) else (n, None) for n, v in x.items()),
            key=lambda e: (isinstance(e[0], str), e[0]),
        )
        for full, column in new:
            for name in (column, full):
                if name is not None and name not in self.slots:
                    self.slots[name] = self.free.pop() if self.free else len(self.slots) + 1
            if column is not None:
                self.columns.setdefault(column, set()).add(full)
            else:
                self.numeric.add(full)

    def forget_names(self, gone) -> None:
        """Remove names of vanished features in slot order, a string column with its last level; slots are reused."""
        values = [n for n in gone if n in self.numeric] + [v for n in gone for v in self.columns.get(n, ())]
        for full in sorted(values, key=self.slots.__getitem__):
            column = next((c for c, levels in self.columns.items() if full in levels), None)
            if column is None:
                self.numeric.remove(full)
                if full not in self.columns:
                    self.free.append(self.slots.pop(full))
                continue
            self.free.append(self.slots.pop(full))
            self.columns[column].remove(full)
            if not self.columns[column]:
                del self.columns[column]
                if column not in self.numeric:
                    self.free.append(self.slots.pop(column))

    def judge(self, x, y, w) -> None:
        ballots = self.ballots(x)
        if self.vote == "prior" and (self.temper or self.pairs) and ballots and self.mass[y] > 0:
            self.adjust(
                self.numbers(x),
                [sum(wt * v[c] for wt, v, _ in ballots.values()) for c in range(len(self.labels))],
                y,
                w,
            )
        for name, (weight, ballot, favoured) in ballots.items():
            a = self.alpha * w
            f = self.features[name]
            f.weight = (2 * a * (favoured == y) + weight) / (1 + a)
            lift = ballot[y]
            if self.vote == "paper":
                lift = math.log(ballot[y] * sum(self.mass) / self.mass[y]) if ballot[y] > TIE else 0.0
            f.evidence.append((a, lift))

    def information(self, f) -> float:
        """Return the bits per vote, older ones discounted at rate alpha."""
        top, bottom = self.evidence(f)
        return top / bottom / math.log(2) if bottom else 0.0

    def evidence(self, f) -> tuple[float, float]:
        top = bottom = 0.0
        for a, lift in f.evidence:
            top, bottom = (top + a * lift) / (1 + a), (bottom + a) / (1 + a)
        return top, bottom

    def adjust(self, values, evidence, y, w) -> None:
        """Do a Newton step on -log p(y) in b and in the factors of pairs, with accumulated curvatures."""
        known = [c for c in range(len(self.labels)) if self.mass[c] > 0]
        votes = self.grids.votes(values, self.mass)
        scores = {c: math.log(self.mass[c] / sum(self.mass)) + self.b * evidence[c] + votes[c] for c in known}
        top = max(scores.values())
        weight = {c: math.exp(s - top) for c, s in scores.items()}
        p = {c: v / sum(weight.values()) for c, v in weight.items()}
        prediction = [p.get(c, 0.0) for c in range(len(self.labels))]
        self.grids.judge(values, self.mass, prediction, y, w, self.temper)
        if not self.temper:
            return
        mean = sum(p[c] * evidence[c] for c in known)
        self.certainty += w * (sum(p[c] * evidence[c] ** 2 for c in known) - mean**2)
        self.b = min(max(self.b + w * (evidence[y] - mean) / self.certainty, 0.01), 2.0)

    def see(self, name) -> None:
        if name not in self.features:
            self.features[name] = Feature(self.slots[name], self.t)
        self.features[name].rounds.append(self.t)

    def prior(self) -> list[float]:
        return [m / sum(self.mass) for m in self.mass]

    def learn_level(self, name, level, y, w) -> None:
        f = self.features[name]
        f.texts += 1
        counts = f.levels.setdefault(level, [])
        counts += [0.0] * (len(self.labels) - len(counts))
        counts[y] += w
        f.level_priors[level] = self.prior()

    def learn_number(self, name, x, y, w) -> None:
        f = self.features[name]
        f.digests.setdefault(y, DigestOracle(self.compression)).add(x, w)
        f.numbers += 1
        interval = min(self.r, int(self.growth * f.numbers))
        due = self.update == "values" and f.numbers - f.refreshed >= interval
        if f.numbers >= self.grace and (f.stumps is None or due):
            self.renew(f)

    def renew(self, f) -> None:
        if f.stumps is None:
            f.stumps = []
            for _ in range(self.J):
                self.add_stump(f)
        else:
            if self.replace == "random":
                f.stumps.pop(int(chance(self.seed, self.t, f.slot, -1) * self.J))
            elif self.replace == "worst":
                highest = max(self.impurity(f, edge) for edge, _ in f.stumps)
                ties = [s for s in f.stumps if self.impurity(f, s[0]) > highest - TIE]
                f.stumps.remove(min(ties, key=lambda s: s[1]))
            else:
                f.stumps.remove(min(f.stumps, key=lambda s: s[1]))
            self.add_stump(f)
        f.refreshed = f.numbers
        f.priors = self.prior()
        f.sides = [(edge, *self.side_distributions(f, edge)) for edge, _ in f.stumps]

    def add_stump(self, f) -> None:
        best, lowest = 0.0, 2.0
        for k in range(self.K):
            edge = self.candidate(f, chance(self.seed, self.t, f.slot, f.serial * self.K + k))
            impurity = self.impurity(f, edge)
            if impurity < lowest - TIE:
                best, lowest = edge, impurity
        f.stumps = sorted([*f.stumps, (best, f.serial)], key=lambda s: s[0])
        f.serial += 1

    def candidate(self, f, u) -> float:
        lo = min(d.lo for d in f.digests.values())
        hi = max(d.hi for d in f.digests.values())
        if self.thresholds == "uniform":
            return lo + u * (hi - lo)
        weight = u * sum(f.digests[c].total for c in sorted(f.digests))
        for c in sorted(f.digests):
            if weight < f.digests[c].total:
                return f.digests[c].at(weight)
            weight -= f.digests[c].total
        return hi

    def split(self, f, edge) -> tuple[list[float], list[float]]:
        """Return eq. 3 and 4 by class: the expected weight below and above."""
        k = range(len(self.labels))
        below = [f.digests[c].below(edge) if c in f.digests else 0.0 for c in k]
        above = [max(f.digests[c].total - below[c], 0.0) if c in f.digests else 0.0 for c in k]
        return below, above

    def impurity(self, f, edge) -> float:
        """Compute eq. 2."""
        purity, n = 0.0, 0.0
        for side in self.split(f, edge):
            if sum(side) > 0:
                purity += sum(side) * sum((v / sum(side)) ** 2 for v in side)
            n += sum(side)
        return 1 - purity / n

    def side_distributions(self, f, edge) -> list[list[float]]:
        """Compute eq. 6, smoothed by the prior; an empty side has the prior."""
        a, prior = self.smoothing, self.prior()
        return [
            [(v + a * p) / (sum(side) + a) for v, p in zip(side, prior, strict=True)] if sum(side) + a > 0 else prior
            for side in self.split(f, edge)
        ]

    def vanished(self, f) -> bool:
        age, last, n = self.t - f.first + 1, f.rounds[-1], self.window
        if last == self.t:
            return False
        if "hoeffding" in self.prune and age >= n:
            recent = sum(s > self.t - n for s in f.rounds)
            if len(f.rounds) / age - recent / n > self.epsilon:
                return True
        gap = self.t - last
        share = len(f.rounds) / (last - f.first + 1 + n)
        return "gap" in self.prune and gap >= n and gap * math.log1p(-share) < math.log(self.delta)
