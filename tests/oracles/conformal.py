"""Adaptive conformal inference in plain NumPy, from the equations in `_engine/evidence` and `_engine/conformal`.

Features are names, not slots; nothing is kept sorted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

RING = 1000
EXPERTS = [
    (presence, level, slow, fast)
    for level in (0, 1)
    for presence, slow, fast in ((0, 0, 0), (1, 0, 0), (1, 0.5, 0), (1, 0, 0.7))
]


class Evidence:
    """Model of the expected log size of a residual (`numbers`), or of the expected score of the true label."""

    def __init__(self, numbers: bool) -> None:
        self.numbers = numbers
        self.table = np.array(EXPERTS if numbers else EXPERTS[:4], dtype=float)
        self.weights = np.full(len(self.table), 1 / len(self.table))
        self.instances = 0
        self.count: Counter[Any] = Counter()  # instances with each name
        self.names: dict[Any, tuple[float, float]] = {}  # weight and variance
        self.amount_weight, self.amount_variance = 0.0, 1.0
        self.level_weight, self.level_variance = 0.0, 1.0
        self.base, self.slow, self.fast, self.ratio = 0.0, 0.0, 0.0, 1.0
        self.started = False  # with the first error other than 0
        self.before = 0  # instances before it

    @property
    def learned(self) -> int:
        return self.instances - self.before if self.started else 0

    def centred(self, names: set[Any]) -> dict[Any, float]:
        """Return presence minus its mean for every known name."""
        return {name: (name in names) - self.count[name] / self.instances for name in self.names}

    def centre(self) -> float:
        """Return the contribution of presence if it were not centred."""
        if not self.instances:
            return 0.0
        held = sum(weight * self.count[name] for name, (weight, _) in self.names.items())
        return held / self.instances + self.amount_weight * math.log(self.count.total() / self.instances + 1)

    def expected_error(self, names: set[Any], level: float) -> float:
        """Compute the expected value for an instance."""
        self.x, self.amount, self.level, self.present = {}, 0.0, level, names
        if self.instances:
            self.x = self.centred(names)
            mean = self.count.total() / self.instances
            self.amount = float(np.clip(math.log((len(names) + 1) / (mean + 1)), -2, 2))
        presence = sum(self.names[name][0] * v for name, v in self.x.items()) + self.amount_weight * self.amount
        self.parts = np.array([presence, self.level_weight * level, self.slow, self.fast])
        self.offsets = self.table @ self.parts
        self.expected = self.base + float(self.weights @ self.offsets)
        return self.expected

    def error(self, expected: float, size: float) -> float:
        if not self.numbers:
            return size - expected
        return float(np.clip(math.log((size / math.exp(expected) + 0.3) / 1.3), -4, 4))

    def start(self, size: float) -> None:
        self.started, self.before = True, self.instances
        if self.numbers:
            self.expected += math.log(size) - self.base
            self.base = math.log(size)

    def learn(self, names: set[Any], size: float) -> None:
        if self.started:
            known = self.error(self.base + self.parts[0], size)
            whole = self.error(self.base + self.parts[0] + self.parts[1], size)
            self.judge(size)
            self.step(known)
            gain = self.level_variance * self.level
            total = 100 + gain * self.level
            self.level_weight += gain * whole / total
            self.level_variance -= gain**2 / total
            self.base += max(1 / (self.learned + 1), self.follow(known)) * known
            self.slow += 0.05 * (whole - self.slow)
            self.fast += 0.15 * (whole - self.fast)
        before = self.centre()
        for name in names:
            self.names.setdefault(name, (0.0, 1.0))
        self.instances += 1
        self.count.update(names)
        self.base += self.centre() - before

    def follow(self, error: float) -> float:
        """Update presence and level by a persistent large error as far as they are unusual; return the base's rate."""
        if not self.numbers or (abs(error) < 4 and self.slow * math.copysign(1, error) <= 0.4):
            return 0.002
        far, spread = self.amount_variance * self.amount**2, 0.01
        for name, v in self.x.items():
            mean = (name in self.present) - v
            far += self.names[name][1] * v**2
            spread += self.names[name][1] * mean * (1 - mean)
        far += self.level_variance * self.level**2
        spread += self.level_variance
        change = 0.04 * error / (far + spread)
        self.level_weight += change * self.level_variance * self.level
        for name, v in self.x.items():
            weight, variance = self.names[name]
            self.names[name] = (weight + change * variance * v, variance)
        self.amount_weight += change * self.amount_variance * self.amount
        return 0.02 * spread / (far + spread)

    def judge(self, size: float) -> None:
        """Update the exponential weights with fixed share."""
        if self.numbers:
            ratio = np.minimum(size / np.exp(self.base + self.offsets), 1000)
            tailed = np.where(ratio <= 5, ratio, 5 + 2 * np.log(np.maximum(ratio, 5) / 5))
            loss = tailed / self.ratio + self.offsets
            rate = max(1 / (self.learned + 1), 0.002)
            self.ratio += rate * (min(size / math.exp(self.expected), 5) - self.ratio)
        else:
            loss = 4 * (size - self.base - self.offsets) ** 2
        raised = self.weights * np.exp(-0.3 * (loss - loss.min()))
        raised /= raised.sum()
        self.weights = 0.999 * raised + 0.001 / len(raised)

    def step(self, error: float) -> None:
        """Update presence and amount weights by a diagonal AROW step for regression."""
        total = 100 + self.amount_variance * self.amount**2
        total += sum(self.names[name][1] * v**2 for name, v in self.x.items())
        for name, v in self.x.items():
            weight, variance = self.names[name]
            self.names[name] = (weight + variance * v * error / total, variance - (variance * v) ** 2 / total)
        self.amount_weight += self.amount_variance * self.amount * error / total
        self.amount_variance -= (self.amount_variance * self.amount) ** 2 / total


class Conformal:
    """Bounds by coverage, of numbers or of the scores of labels."""

    def __init__(self, coverages: Iterable[float], numbers: bool) -> None:
        self.coverages, self.numbers = sorted(coverages), numbers
        self.evidence = Evidence(numbers)
        self.scores: list[float] = []
        self.aims = [(1 - c) / (2 if numbers else 1) for c in self.coverages]
        self.miss = [[aim, aim] for aim in self.aims]

    def quantile(self, scores: np.ndarray, level: float) -> float:
        ordered, n = np.sort(scores), len(scores)
        at = level * (n + 1) - 1
        if 0 < at < n - 1:
            return float(np.interp(at, np.arange(n), ordered))
        outer = ordered[0] if at <= 0 else ordered[-1]
        further = 0.3 * (abs(outer) if self.numbers else 1) * min(1, -at if at <= 0 else at - (n - 1))
        return float(outer - further if at <= 0 else outer + further)

    def interval(self, names: set[Any], prediction: float, level: float) -> list[tuple[float, float]]:
        expected = self.evidence.expected_error(names, level)
        scale = math.exp(expected) if self.evidence.started else 0.0
        scores = np.array(self.scores[-RING:])
        below = above = 0.0
        self.bounds = []
        for low_miss, high_miss in self.miss:
            if not len(scores):
                self.bounds.append((-math.inf, math.inf))
                continue
            own = len(scores) / (len(scores) + 200)
            even = [self.quantile(abs(scores), 1 - 2 * miss) for miss in (low_miss, high_miss)]
            below = max(below, -own * self.quantile(scores, low_miss) + (1 - own) * even[0])
            above = max(above, own * self.quantile(scores, 1 - high_miss) + (1 - own) * even[1])
            self.bounds.append((prediction - scale * below, prediction + scale * above))
        return self.bounds

    def highest(self, names: set[Any]) -> list[float]:
        """Return the largest score of a label in each set."""
        expected = self.evidence.expected_error(names, 0.0)
        if not self.scores:
            found = [math.inf] * len(self.miss)
        else:
            found = [expected + self.quantile(np.array(self.scores[-RING:]), 1 - miss) for miss, _ in self.miss]
        self.bounds = [(-math.inf, high) for high in np.maximum.accumulate([1e-9, *found])[1:].tolist()]
        return [high for _, high in self.bounds]

    def observe(self, names: set[Any], truth: float, prediction: float = 0.0) -> None:
        if self.scores and self.evidence.started:
            for number in range(len(self.miss)):
                self.adapt(number, truth, prediction)
        size = abs(truth - prediction)
        if not self.evidence.started and size > 0:
            self.evidence.start(size)
            self.scores = []
        if self.numbers:
            scale = math.exp(self.evidence.expected) if self.evidence.started else 0.0
            self.scores.append((truth - prediction) / scale if scale else 0.0)
        else:
            self.scores.append(truth - self.evidence.expected)
        self.evidence.learn(names, size)

    def adapt(self, number: int, truth: float, prediction: float) -> None:
        """Update the levels of a coverage after a target; for a set only the first one."""
        step = (0.005 if self.numbers else 0.01) + 0.5 / (100 + self.evidence.learned)
        miss, aim, (low, high) = self.miss[number], self.aims[number], self.bounds[number]
        missed = [truth < low, truth > high] if self.numbers else [truth > high]
        aims = [aim] * len(missed)
        if self.numbers:
            shut = [low == prediction <= truth, high == prediction >= truth]
            aims = [0.0 if shut[side] else aim * (1 + shut[1 - side]) for side in (0, 1)]
        elif high <= 1e-9 and not missed[0]:
            aims = [0.0]
        for side, share in enumerate(aims):
            moved = miss[side] + step * (share - missed[side])
            miss[side] = min(max(moved, 0.0), min(0.45, 3 * aim) if self.numbers else 0.9)
