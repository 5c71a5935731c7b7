"""The feature-adaptive ensemble from lists of instances: every count and every accuracy is recomputed each time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.oracles.harness import ONE

Seen = tuple[set[Any], Any, float]


def prediction_of(chances: dict[Any, float]) -> Any:
    """Return the first label that no other exceeds by more than rounding."""
    return next(label for label, chance in chances.items() if chance > max(chances.values()) - 1e-9)


class PlainMember:
    def __init__(self, features: set[Any]) -> None:
        self.features, self.seen, self.right, self.marks = features, [], [], 0
        self.seen: list[Seen]
        self.right: list[bool]

    def probabilities(self, x: set[Any], labels: list[Any], prior: float) -> dict[Any, float]:
        logs = {}
        for label in labels:
            own = sum(w for _, y, w in self.seen if y == label)
            logs[label] = math.log((own + prior) / (sum(w for *_, w in self.seen) + prior * len(labels)))
            for name in self.features & x:
                held = sum(w for there, y, w in self.seen if y == label and name in there)
                logs[label] += math.log((held + prior) / (own + 2 * prior))
        total = sum(math.exp(value - max(logs.values())) for value in logs.values())
        return {label: math.exp(value - max(logs.values())) / total for label, value in logs.items()}

    def accuracy(self, span: int) -> float:
        return sum(self.right[-span:]) / len(self.right[-span:]) if self.right else 1.0


class PlainFAE:
    takes_order = evicts = True

    def __init__(self, M=250, m=5, p=3, f=0.15, r=10, N=50, vote="probability", prior=1.0, max_learners=20) -> None:
        self.M, self.m, self.p, self.f, self.r, self.N = M, m, p, f, r, N
        self.hard, self.prior, self.most = vote == "label", prior, max_learners
        self.labels: list[Any] = []
        self.seen: list[Seen] = []
        self.members: list[PlainMember] = []
        self.right: list[bool] = []
        self.removed = self.replaced = 0

    def meet(self, y: Any) -> None:
        if y not in self.labels:
            self.labels.append(y)

    # ---------------------------------------------------------------- predicting

    def weights(self) -> list[float]:
        ripe = [len(member.seen) >= self.m and member.marks == 0 for member in self.members]
        if not any(ripe):
            return [len(member.seen) for member in self.members]
        found = [member.accuracy(self.N) * old for member, old in zip(self.members, ripe, strict=True)]
        return found if sum(found) else [float(old) for old in ripe]

    def votes(self, x: dict[Any, float]) -> list[dict[Any, float]]:
        found = [member.probabilities(set(x), self.labels, self.prior) for member in self.members]
        if self.hard:
            best = [prediction_of(vote) for vote in found]
            return [{label: float(label == prediction) for label in self.labels} for prediction in best]
        return found

    def scores(self, x: dict[Any, float]) -> dict[Any, float]:
        weights, votes = self.weights(), self.votes(x)
        return {
            label: sum(w * vote[label] for w, vote in zip(weights, votes, strict=True)) / sum(weights)
            for label in self.labels
        }

    # ---------------------------------------------------------------- learning

    def learn(self, x: dict[Any, float], y: Any, w: float, fresh: set[Any], order: dict[Any, int]) -> None:
        names = set(x) - {ONE}
        if self.members:
            self.right.append(prediction_of(self.scores(x)) == y)
            for member, vote in zip(self.members, self.votes(x), strict=True):
                member.right.append(prediction_of(vote) == y)
        for seen in [self.seen, *(member.seen for member in self.members)]:
            seen.append((set(names), y, w))
        best = set(sorted(order, key=lambda name: (-np.float32(self.weight(name)), order[name]))[: self.M])
        if self.due(best):
            self.make_way()
            self.members.append(PlainMember(best))
            self.members[-1].seen.append((set(names), y, w))

    def weight(self, name: Any) -> float:
        """Return the chi-square statistic of a feature's presence and the label."""
        total, found = sum(w for *_, w in self.seen), 0.0
        here = sum(w for there, _, w in self.seen if name in there)
        for label in self.labels:
            own = sum(w for _, y, w in self.seen if y == label)
            inside = sum(w for there, y, w in self.seen if y == label and name in there)
            for got, margin in ((inside, here), (own - inside, total - here)):
                expected = margin * own / total
                found += (got - expected) ** 2 / expected if expected > 1e-12 * total else 0.0
        return found

    def due(self, best: set[Any]) -> bool:
        if not self.members:
            return True
        youngest = self.members[-1]
        if len(best ^ youngest.features) > self.f * len(best):
            return True
        short, long = self.right[-self.N :], self.right[-2 * self.N :]
        return len(youngest.seen) > self.r and sum(short) / len(short) < sum(long) / len(long)

    def make_way(self) -> None:
        found = [member.accuracy(self.N) for member in self.members]
        threshold = (max(found) + min(found)) / 2 if found else 0.0
        for member, accuracy in zip(self.members, found, strict=True):
            member.marks = member.marks + 1 if accuracy < threshold else 0
        kept = [member for member in self.members if member.marks < self.p]
        self.removed += len(self.members) - len(kept)
        if len(kept) == self.most:
            kept.remove(min(kept, key=lambda member: member.accuracy(self.N)))
            self.replaced += 1
        self.members = kept

    def forget(self, name: Any) -> None:
        for seen in [self.seen, *(member.seen for member in self.members)]:
            for there, *_ in seen:
                there.discard(name)
        for member in self.members:
            member.features.discard(name)
