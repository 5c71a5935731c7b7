"""A learner and its plain twin walk the same stream; the twin sees scaled dicts and ±1, everything else is done here.

A twin of a two-class rule has ``score(x)``, ``learn(x, y, w, fresh)`` and ``negate()``; x maps names to values, with
the intercept under `ONE`.
"""

import copy
import math

import numpy as np

from tests.oracles.leaning import Leaning

ONE = "the intercept"


class PlainScaler:
    """Each value joins its feature's values, all of which are kept, before it is scaled by them."""

    def __init__(self, kind, clip=3.0):
        self.kind, self.clip, self.values = kind, clip, {}

    def scaled(self, x, w, commit):
        if self.kind == "none":
            return dict(x)
        out = {}
        for name, value in x.items():
            if "=" in name:  # the indicator of a string value
                out[name] = value
                continue
            past = [*self.values.get(name, []), (value, w)]
            if commit:
                self.values[name] = past
            out[name] = self.scale(value, np.array(past))
        return out

    def scale(self, value, past):
        v, w = past[:, 0], past[:, 1]
        if self.kind == "minmax":
            return (value - v.min()) / (v.max() - v.min()) if v.max() > v.min() else 0.0
        mean = (v * w).sum() / w.sum()
        sd = math.sqrt((w * (v - mean) ** 2).sum() / w.sum())
        return float(np.clip((value - mean) / sd, -self.clip, self.clip)) if sd > 1e-12 else 0.0


class OneVsRest:
    """One problem for two labels, then one a label: the first negated, the second copied, the new one from nothing."""

    def __init__(self, make):
        self.make, self.labels, self.problems = make, [], [make()]

    def meet(self, y):
        if y in self.labels:
            return
        self.labels.append(y)
        if len(self.labels) == 3:
            self.problems = [copy.deepcopy(self.problems[0]), self.problems[0], self.make()]
            self.problems[0].negate()
        elif len(self.labels) > 3:
            self.problems.append(self.make())

    def scores(self, x):
        if len(self.labels) < 2:
            return dict.fromkeys(self.labels, 0.0)
        found = [p.score(x) for p in self.problems]
        return dict(zip(self.labels, found if len(found) > 1 else [-found[0], found[0]], strict=True))

    def learn(self, x, y, w, fresh):
        if len(self.problems) == 1:
            self.problems[0].learn(x, 1.0 if self.labels.index(y) == 1 else -1.0, w, fresh)
        else:
            for label, problem in zip(self.labels, self.problems, strict=True):
                problem.learn(x, 1.0 if y == label else -1.0, w, fresh)


def stream(n=180, d=12, labels=2, weights=False, seed=0, late=3):
    """(x, y, w): half of the values absent, features that come late, one constant, and empty instances."""
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


def follow(learner, twin, instances, rtol=1e-9, atol=1e-9):
    """Learn the stream with both, comparing every margin before it is learned."""
    scaler = PlainScaler(learner.scale, learner.clip)
    known, compared = set(), 0
    intercept = {ONE: 1.0} if learner.fit_intercept else {}
    met = False
    leaning = Leaning() if intercept and getattr(learner, "majority_bias", False) else None
    for step, (x, y, w) in enumerate(instances):
        old = {name: value for name, value in x.items() if name in known}
        if old and met:
            expected = twin.scores({**intercept, **scaler.scaled(old, 1.0, commit=False)})
            if leaning:
                expected = {label: score + leaning.added(label) for label, score in expected.items()}
            found = learner.margins_one(x)
            assert list(found) == list(expected)
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=rtol, atol=atol, err_msg=f"step {step}"
            )
            compared += 1
        learner.learn_one(x, y, w)
        if w == 0.0:
            continue
        twin.meet(y)
        met = True
        if x:
            scaled = {**intercept, **scaler.scaled(x, w, commit=True)}
            fresh = set(x) - known | ({ONE} if not known else set())
            if leaning:
                leaning.learn(twin.scores(scaled), y, w)
            twin.learn(scaled, y, w, fresh)
        known |= set(x)
    assert compared > 50


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


def walk(make_learner, make_twin, setting, **more):
    """`follow` in one of SETTINGS."""
    learner = make_learner(scale=setting["scale"], fit_intercept=setting["fit_intercept"])
    instances = stream(labels=setting["labels"], weights=setting["weights"], **more)
    follow(learner, OneVsRest(make_twin), instances)
    return learner
