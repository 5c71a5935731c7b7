"""What surrounds a rule, in plain Python: scaler, intercept, one-versus-rest, string values, eviction.

A rule is an object with ``score(x)``, ``learn(x, y, w, fresh, order)``, ``forget(name)``, ``negate()`` and
``weight(name)``; x maps names to scaled values with the intercept under `ONE`, y is -1 or +1, `order` ranks all known
names (slots) so that ties can be broken as the library breaks them.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from tests.oracles.leaning import Leaning

ONE = "the intercept"


class Scaler:
    """Keeps every value, and computes mean and deviation (or range) anew each time."""

    def __init__(self, kind: str, clip: float) -> None:
        self.kind, self.clip = kind, clip
        self.past: dict[Any, list[tuple[float, float]]] = {}

    def scale(self, name: Any, value: float, w: float, commit: bool) -> float:
        if self.kind == "none":
            return value
        past = [*self.past.get(name, []), (value, w)]
        if commit:
            self.past[name] = past
        v, weight = np.array(past).T
        if self.kind == "minmax":
            return float((value - v.min()) / (v.max() - v.min())) if v.max() > v.min() else 0.0
        mean = np.average(v, weights=weight)
        deviation = math.sqrt(np.average((v - mean) ** 2, weights=weight))
        if deviation <= 1e-12 * max(1.0, abs(mean)):
            return 0.0
        return float(np.clip((value - mean) / deviation, -self.clip, self.clip))


class Slots:
    """Which number a name gets: new names in sorted order, numbers given up are used again, last given up first."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.size = 1
        self.of: dict[Any, int] = {}
        self.column: dict[str, str] = {}

    def take(self, name: Any) -> None:
        if name not in self.of:
            if self.free:
                self.of[name] = self.free.pop()
            else:
                self.of[name] = self.size
                self.size += 1

    def add(self, name: Any, column: Any) -> None:
        if column is not None:
            self.take(("column", column))
            self.column[name] = column
        self.take(name)

    def remove(self, name: Any) -> None:
        self.free.append(self.of.pop(name))
        column = self.column.pop(name, None)
        if column is not None and column not in self.column.values():
            self.free.append(self.of.pop(("column", column)))


class Reference:
    """A learner made of slow and plain parts around a rule."""

    def __init__(self, make: Any, learner: Any) -> None:
        self.make, self.problems, self.labels = make, [make()], []
        self.scaler = Scaler(learner.scale, learner.clip)
        self.intercept = learner.fit_intercept
        self.leaning = Leaning() if learner.majority_bias and learner.fit_intercept else None
        self.bound, self.evict = learner.max_features, learner.evict
        self.slots = Slots()
        self.last: dict[Any, int] = {}
        self.step = 0
        self.started = False

    def names(self, x: dict[Any, Any]) -> dict[Any, tuple[float, Any]]:
        """Feature -> (value, column or None), absent ones left out."""
        found: dict[Any, tuple[float, Any]] = {}
        for name, value in x.items():
            if isinstance(value, str):
                found[f"{name}={value}"] = (1.0, name)
            elif value is not None and not math.isnan(value):
                found[name] = (value, None)
        return found

    def scaled(self, found: dict[Any, tuple[float, Any]], w: float, commit: bool) -> dict[Any, float]:
        x = {
            name: value if column is not None else self.scaler.scale(name, value, w, commit)
            for name, (value, column) in found.items()
        }
        return {ONE: 1.0, **x} if self.intercept else x

    def margins(self, x: dict[Any, Any]) -> dict[Any, float] | None:
        """Score by label; None where the class frequencies answer."""
        found = {n: v for n, v in self.names(x).items() if n in self.last}
        if not found or not self.labels:
            return None
        if len(self.labels) == 1:
            return {self.labels[0]: 0.0}
        scores = self.scores(self.scaled(found, 1.0, False))
        return {label: score + self.leaning.added(label) if self.leaning else score for label, score in scores.items()}

    def scores(self, scaled: dict[Any, float]) -> dict[Any, float]:
        """By label, as the rule has them."""
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        scores = [p.score(scaled) for p in self.problems]
        return dict(zip(self.labels, scores if len(scores) > 1 else [-scores[0], scores[0]], strict=True))

    def learn(self, x: dict[Any, Any], y: Any, w: float) -> None:
        if w == 0.0:
            return
        found = self.admit(self.names(x))
        if y not in self.labels:
            self.add_label(y)
        self.step += 1
        if found:
            fresh = {n for n in found if n not in self.last} | (set() if self.started else {ONE})
            self.started = True
            scaled = self.scaled(found, w, True)
            if self.leaning:
                self.leaning.learn(self.scores(scaled), y, w)
            for name in found:
                self.last[name] = self.step
            for label, problem in zip(self.labels, self.problems, strict=False):
                positive = y == (label if len(self.problems) > 1 else self.labels[-1]) and len(self.labels) > 1
                problem.learn(scaled, 1.0 if positive else -1.0, w, fresh, {n: self.slots.of[n] for n in self.last})

    def add_label(self, y: Any) -> None:
        self.labels.append(y)
        if len(self.labels) == 3:
            self.problems = [copy.deepcopy(self.problems[0]), self.problems[0]]
            self.problems[0].negate()
        if len(self.labels) > 2:
            self.problems.append(self.make())

    def admit(self, found: dict[Any, tuple[float, Any]]) -> dict[Any, tuple[float, Any]]:
        """Give new names numbers, within the bound; what does not fit is left out of the instance."""
        new = sorted((n for n in found if n not in self.last), key=lambda n: (isinstance(n, str), n))
        old = [n for n in found if n in self.last]
        if self.bound is not None and len(self.last) + len(new) > self.bound:
            fit = max(0, min(len(new), self.bound - len(old)))
            room = self.bound - len(self.last)
            if fit > room:
                self.give_up(max(fit - room, self.bound // 16), spared=set(old))
            new = new[:fit]
        for name in new:
            self.slots.add(name, found[name][1])
        return {n: found[n] for n in (*old, *new)}

    def give_up(self, count: int, spared: set[Any]) -> None:
        def rank(name: Any) -> tuple[Any, ...]:
            age = (self.last[name], self.slots.of[name])
            return (self.weight(name), *age) if self.evict == "lightest" else age

        for name in sorted((n for n in self.last if n not in spared), key=rank)[:count]:
            self.slots.remove(name)
            del self.last[name]
            self.scaler.past.pop(name, None)
            for problem in self.problems:
                problem.forget(name)

    def weight(self, name: Any) -> float:
        return float(sum(abs(p.weight(name)) for p in self.problems))


def stream(n: int, *, labels: int, weights: bool, strings: bool, seed: int, names: int = 10) -> list[Any]:
    """(x, y, w) with absent, late and constant features, empty instances, and weights of 0 among others.

    Late features come one by one: two that are seen for the second time in one instance are both ±1 deviation away
    from their means, and which of them a truncation keeps would be decided by rounding.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(labels, names))
    rows = []
    for t in range(n):
        values = rng.normal(size=names) * np.linspace(0.3, 4, names) + np.linspace(-2, 2, names)
        values[0] = 2.5
        kind = int(np.argmax(truth @ values + rng.normal(size=labels)))
        kind = kind if kind < 2 or t > n // 3 else 0
        there = rng.random(names) < 0.5
        if t < 3 * names:
            there = np.arange(names) == t // 3
        there[names - 3 :] &= t > n // 2 + 10 * np.arange(3)
        x: dict[Any, Any] = {f"f{j}" if j % 2 else j: float(values[j]) for j in np.flatnonzero(there)}
        if strings and rng.random() < 0.6:
            x["colour"] = "rgb"[(kind + int(rng.integers(2))) % 3]
        if t % 37 == 36:
            x = {}
        rows.append((x, f"label {kind}", float(rng.choice([1.0, 0.25, 3.0, 0.0])) if weights else 1.0))
    return rows


def follow(learner: Any, make: Any, rows: list[Any], tolerance: float = 1e-9) -> Reference:
    """Walk the stream with both; compare every margin, and after every learn the weight of every feature."""
    reference = Reference(make, learner)
    compared = 0
    for t, (x, y, w) in enumerate(rows):
        expected = reference.margins(x)
        if expected is not None:
            found = learner.margins_one(x)
            assert list(found) == list(expected)
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=tolerance, atol=tolerance, err_msg=f"step {t}"
            )
            compared += len(expected) > 1
        learner.learn_one(x, y, w)
        reference.learn(x, y, w)
        held = {name: feature.weight for name, feature in learner.features.items()}
        assert set(held) == set(reference.last), f"step {t}"
        np.testing.assert_allclose(
            [held[n] for n in held], [reference.weight(n) for n in held], rtol=tolerance, atol=tolerance
        )
    assert compared > len(rows) // 2
    return reference
