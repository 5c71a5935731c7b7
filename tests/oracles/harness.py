"""Compare learners with oracles: the common steps around a rule, in plain Python, and a step-by-step comparison.

A *rule* of two classes has ``score(x)``, ``learn(x, y, w, fresh)`` and ``negate()``; x maps names to scaled values with
the intercept under `ONE`, y is -1 or +1, `fresh` holds the names that are new. A rule that is compared through
evictions also has ``forget(name)`` and ``weight(name)``, and may accept `order`, which ranks all known names by slot so
that ties are broken as in the library. `OneVsRest` makes a *twin* for any number of labels from a rule:
``meet(y)``, ``scores(x)``, ``learn(x, y, w, fresh)``. Any other object with these three is a twin as well; its
``pass_time()``, if it has one, is called before each instance is learned, an empty one too. A twin that learns
instances without a label (y is None) has ``learn_unlabelled(x, w)``, and `order` if it accepts that.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tests.oracles.majority_bias import MajorityBias
from tests.oracles.robust import RobustScaler

ONE = "the intercept"


class Scaler:
    """Scaler that keeps all values of a feature and adds each value before scaling it.

    `learned` counts learned instances; one that is learned without being scaled must be added to it.
    """

    def __init__(self, kind: str, clip: float = 3.0) -> None:
        self.kind, self.clip = kind, clip
        self.past: dict[Any, Any] = {}
        self.learned = 0

    def scaled(self, x: dict[Any, float], w: float, commit: bool) -> dict[Any, float]:
        """Return the scaled instance; an indicator `column=level` stays as it is."""
        self.learned += commit
        if self.kind == "none":
            return dict(x)
        out = {}
        for name, value in x.items():
            if isinstance(name, str) and "=" in name:
                out[name] = value
                continue
            if self.kind == "robust":
                statistics = copy.deepcopy(self.past.get(name, RobustScaler(self.clip)))
                out[name] = statistics.scale(value, self.learned + (not commit), w)
                if commit:
                    self.past[name] = statistics
                continue
            past = [*self.past.get(name, []), (value, w)]
            if commit:
                self.past[name] = past
            out[name] = self.scale(value, np.array(past))
        return out

    def scale(self, value: float, past: np.ndarray) -> float:
        v, w = past.T
        if self.kind == "minmax":
            return float((value - v.min()) / (v.max() - v.min())) if v.max() > v.min() else 0.0
        mean = np.average(v, weights=w)
        deviation = math.sqrt(np.average((v - mean) ** 2, weights=w))
        if deviation <= 1e-12 * max(1.0, abs(mean)):
            return 0.0
        return float(np.clip((value - mean) / deviation, -self.clip, self.clip))


class OneVsRest:
    """One problem for two labels, then one per label: the first negated, the second copied, the new one empty."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.labels, self.problems = make, [], [make()]

    def meet(self, y: Any) -> None:
        if y in self.labels:
            return
        self.labels.append(y)
        if len(self.labels) == 3:
            self.problems = [copy.deepcopy(self.problems[0]), self.problems[0], self.make()]
            self.problems[0].negate()
        elif len(self.labels) > 3:
            self.problems.append(self.make())

    def scores(self, x: dict[Any, float]) -> dict[Any, float]:
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        found = [problem.score(x) for problem in self.problems]
        return dict(zip(self.labels, found if len(found) > 1 else [-found[0], found[0]], strict=True))

    def learn(
        self, x: dict[Any, float], y: Any, w: float, fresh: set[Any], order: dict[Any, int] | None = None
    ) -> None:
        more = {} if order is None or not self.takes_order else {"order": order}
        if len(self.problems) == 1:
            self.problems[0].learn(x, 1.0 if self.labels.index(y) == 1 else -1.0, w, fresh, **more)
        else:
            for label, problem in zip(self.labels, self.problems, strict=True):
                problem.learn(x, 1.0 if y == label else -1.0, w, fresh, **more)

    @property
    def takes_order(self) -> bool:
        return "order" in inspect.signature(self.problems[0].learn).parameters

    @property
    def evicts(self) -> bool:
        """Whether its rules can be compared through evictions."""
        return all(hasattr(self.problems[0], name) for name in ("forget", "weight"))

    def forget(self, name: Any) -> None:
        for problem in self.problems:
            problem.forget(name)

    def weight(self, name: Any) -> float:
        return float(sum(abs(problem.weight(name)) for problem in self.problems))


class Slots:
    """Assigns slots to names: new names in sorted order; freed slots are reused, the last freed first."""

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


class Surroundings:
    """String values, absence, scaler, intercept, majority bias and eviction around a twin."""

    def __init__(self, twin: Any, learner: Any) -> None:
        self.twin = twin
        self.scaler = Scaler(learner.scale, learner.clip)
        self.intercept = {ONE: 1.0} if learner.fit_intercept else {}
        biased = learner.fit_intercept and getattr(learner, "majority_bias", False)
        self.bias = MajorityBias() if biased else None
        self.bound, self.evict = learner.max_features, learner.evict
        self.slots = Slots()
        self.last: dict[Any, int] = {}
        self.step = 0
        self.started = self.labelled = False

    def names(self, x: dict[Any, Any]) -> dict[Any, tuple[float, Any]]:
        """Return (value, column or None) by feature, without absent ones."""
        found: dict[Any, tuple[float, Any]] = {}
        for name, value in x.items():
            if isinstance(value, str):
                found[f"{name}={value}"] = (1.0, name)
            elif value is not None and not math.isnan(value):
                found[name] = (value, None)
        return found

    def presented(self, found: dict[Any, tuple[float, Any]], w: float, commit: bool) -> dict[Any, float]:
        return {**self.intercept, **self.scaler.scaled({n: value for n, (value, _) in found.items()}, w, commit)}

    def margins(self, x: dict[Any, Any]) -> dict[Any, float] | None:
        """Return the score by label; None if the learner predicts by class frequencies."""
        given = self.names(x)
        found = {n: v for n, v in given.items() if n in self.last}
        if not found or not self.labelled:
            return None
        # pass columns with an unseen value to a twin that uses columns: they are present
        unseen = {name: column for name, (_, column) in given.items() if name not in found}
        self.twin.noted = {name if column is None else column for name, column in unseen.items()}
        scores = self.twin.scores(self.presented(found, 1.0, False))
        self.twin.noted = set()
        return {label: score + (self.bias.added(label) if self.bias else 0.0) for label, score in scores.items()}

    def learn(self, x: dict[Any, Any], y: Any, w: float) -> None:
        if w == 0.0:
            return
        if y is None and not hasattr(self.twin, "learn_unlabelled"):
            return
        found = self.admit(self.names(x))
        if y is not None:
            self.twin.meet(y)
            self.labelled = True
        self.step += 1
        if hasattr(self.twin, "pass_time"):
            self.twin.pass_time()
        if not found:
            self.scaler.learned += 1
            return
        fresh = {n for n in found if n not in self.last} | (set() if self.started else {ONE})
        self.started = True
        scaled = self.presented(found, w, True)
        if self.bias:
            self.bias.learn(self.twin.scores(scaled), y, w)
        for name in found:
            self.last[name] = self.step
        if y is None:
            order = ({n: self.slots.of[n] for n in self.last},) if getattr(self.twin, "takes_order", False) else ()
            self.twin.learn_unlabelled(scaled, w, *order)
        elif getattr(self.twin, "takes_order", False):
            self.twin.learn(scaled, y, w, fresh, {n: self.slots.of[n] for n in self.last})
        else:
            self.twin.learn(scaled, y, w, fresh)

    def admit(self, found: dict[Any, tuple[float, Any]]) -> dict[Any, tuple[float, Any]]:
        """Add new names within the bound; names that do not fit are removed from the instance."""
        new = sorted((n for n in found if n not in self.last), key=lambda n: (isinstance(n, str), n))
        old = [n for n in found if n in self.last]
        if self.bound is not None and len(self.last) + len(new) > self.bound:
            fit = max(0, min(len(new), self.bound - len(old)))
            space = self.bound - len(self.last)
            if fit > space:
                self.make_space(max(fit - space, self.bound // 16), spared=set(old))
            new = new[:fit]
        for name in new:
            self.slots.add(name, found[name][1])
        return {n: found[n] for n in (*old, *new)}

    def make_space(self, count: int, spared: set[Any]) -> None:
        def rank(name: Any) -> tuple[Any, ...]:
            age = (self.last[name], self.slots.of[name])
            return (self.twin.weight(name), *age) if self.evict == "lightest" else age

        for name in sorted((n for n in self.last if n not in spared), key=rank)[:count]:
            self.slots.remove(name)
            del self.last[name]
            self.scaler.past.pop(name, None)
            self.twin.forget(name)


def stream(n=180, d=12, labels=2, weights=False, seed=0, late=3):
    """Yield (x, y, w) with half of the values absent, late features, a constant one, and empty instances."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(labels, d))
    for step in range(n):
        row = rng.normal(size=d) * np.linspace(0.2, 5, d) + np.linspace(-3, 3, d)
        row[0] = 1.0
        y = int(np.argmax(truth @ (row - np.linspace(-3, 3, d)) + rng.normal(size=labels)))
        if y == 2 and step < n // 3:
            y = 0
        there = rng.random(d) < 0.5
        there[d - late :] &= step > n // 2
        if step % 41 == 40:
            there[:] = False
        w = float(rng.choice([1.0, 0.5, 3.0, 0.0])) if weights else 1.0
        yield {f"f{j}": float(row[j]) for j in np.flatnonzero(there)}, f"label {y}", w


def mixed_stream(n: int, *, labels: int, weights: bool, strings: bool, seed: int, names: int = 10) -> list[Any]:
    """Generate (x, y, w) with absent, late and constant features, empty instances, and some weights of 0.

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


def follow(learner: Any, twin: Any, rows: Iterable[Any], tolerance: float = 1e-9) -> Surroundings:
    """Learn the rows (x, y, w) with both and compare every margin before it is learned.

    The weight of every feature is compared after each step if the rules have it. `twin` may be a function that
    makes a rule of two classes.
    """
    twin = twin if hasattr(twin, "scores") else OneVsRest(twin)
    around = Surroundings(twin, learner)
    compared = steps = 0
    for step, (x, y, w) in enumerate(rows):
        steps += 1
        expected = around.margins(x)
        if expected is not None:
            found = learner.margins_one(x)
            assert list(found) == list(expected)
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=tolerance, atol=tolerance, err_msg=f"step {step}"
            )
            compared += 1
        learner.learn_one(x, y, w)
        around.learn(x, y, w)
        if getattr(twin, "evicts", False):
            held = {name: feature.weight for name, feature in learner.features.items()}
            assert set(held) == set(around.last), f"step {step}"
            np.testing.assert_allclose(
                [held[n] for n in held], [twin.weight(n) for n in held], rtol=tolerance, atol=tolerance
            )
    assert compared > min(50, steps // 2)
    return around


class RegressionSurroundings(Surroundings):
    """Common steps around a regression rule; keeps all targets and predicts their mean if no feature is known.

    The rule has ``score(x)``, the deviation from the mean; ``learn(x, y, w, fresh, mean, deviation)``, where mean and
    deviation are those of all targets so far, y included; ``forget(name)`` and ``weight(name)``, which is not negative.
    """

    def __init__(self, rule: Any, learner: Any) -> None:
        super().__init__(rule, learner)
        self.targets: list[tuple[float, float]] = []

    def moments(self) -> tuple[float, float]:
        """Return the mean and deviation of the learned targets."""
        y, w = np.array(self.targets).T
        mean = float(np.average(y, weights=w))
        return mean, math.sqrt(np.average((y - mean) ** 2, weights=w))

    def predict(self, x: dict[Any, Any]) -> float:
        if not self.targets:
            return 0.0
        found = {n: v for n, v in self.names(x).items() if n in self.last}
        return self.moments()[0] + (self.twin.score(self.presented(found, 1.0, False)) if found else 0.0)

    def learn(self, x: dict[Any, Any], y: Any, w: float) -> None:
        if w == 0.0:
            return
        found = self.admit(self.names(x))
        self.targets.append((y, w))
        self.step += 1
        if not found:
            self.scaler.learned += 1
            return
        fresh = {n for n in found if n not in self.last} | (set() if self.started else {ONE})
        self.started = True
        scaled = self.presented(found, w, True)
        for name in found:
            self.last[name] = self.step
        more = {"order": {n: self.slots.of[n] for n in self.last}} if getattr(self.twin, "takes_order", False) else {}
        self.twin.learn(scaled, y, w, fresh, *self.moments(), **more)


def numbered(rows: Iterable[Any]) -> list[Any]:
    """Replace the labels of rows (x, label, w) by numbers that depend on label and values."""
    found = []
    for x, label, w in rows:
        values = [v for v in x.values() if isinstance(v, float)]
        found.append((x, 7.0 * float(label[6:]) - 30.0 + 2.0 * sum(values), w))
    return found


def follow_numbers(
    learner: Any, rule: Any, rows: Iterable[Any], tolerance: float = 1e-9, around: Any = RegressionSurroundings
) -> Any:
    """Learn the rows (x, y, w) with both; compare every prediction before it is learned, and every weight."""
    plain = around(rule, learner)
    varied = 0
    for step, (x, y, w) in enumerate(rows):
        expected, found = plain.predict(x), learner.predict_one(x)
        assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), f"step {step}"
        varied += expected not in (0.0, y)
        learner.learn_one(x, y, w)
        plain.learn(x, y, w)
        held = {name: feature.weight for name, feature in learner.features.items()}
        assert set(held) == set(plain.last), f"step {step}"
        if hasattr(rule, "weight"):
            weights = [rule.weight(name) for name in held]
            np.testing.assert_allclose(list(held.values()), weights, rtol=tolerance, atol=tolerance)
    assert varied > 20
    return plain


SETTINGS = [
    {"scale": scale, "fit_intercept": intercept, "labels": labels, "weights": weights}
    for scale, intercept, labels, weights in [
        ("standard", True, 2, False),
        ("standard", False, 2, True),
        ("none", True, 3, True),
        ("none", False, 2, False),
        ("minmax", True, 4, False),
    ]
]


def follow_in(
    make_learner: Callable[..., Any], make_rule: Callable[[], Any], setting: dict[str, Any], **more: Any
) -> Any:
    """Run `follow` in one of SETTINGS and return the learner."""
    learner = make_learner(scale=setting["scale"], fit_intercept=setting["fit_intercept"])
    follow(learner, OneVsRest(make_rule), stream(labels=setting["labels"], weights=setting["weights"], **more))
    return learner
