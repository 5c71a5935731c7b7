"""Naive Bayes on presence follows its definition; the logarithms it keeps are those of the counts as they are."""

from __future__ import annotations

import math
import pickle
import random

import numpy as np
import pytest

import varifold
from tests.engines import class_engine
from varifold.naive_bayes._presence import PresenceModel


@pytest.mark.parametrize("labels", [2, 3])
def test_of_many_columns_that_are_mostly_absent_only_those_present_count(labels: int) -> None:
    """320 columns: an instance that has 40 or fewer of them, the intercept included, is judged by these alone."""
    rng, engine = np.random.default_rng(0), class_engine(PresenceModel())
    seen = []
    for step in range(150):
        x = {f"f{j}": 1.0 for j in rng.choice(320, 200 if step < 20 else 12, replace=False)}
        y = int(rng.integers(labels))
        engine.learn_one(x, y)
        seen.append((x, y))
    counts = {y: sum(label == y for _, label in seen) for y in range(labels)}
    first = {name: next(i for i, (x, _) in enumerate(seen) if name in x) for name in set().union(*(x for x, _ in seen))}
    assert len(first) == 320
    for size in (1, 38, 39, 40, 200):
        x = {f"f{j}": 1.0 for j in rng.choice(320, size, replace=False)}
        logs = {}
        for y, count in counts.items():
            share = (count + 0.5) / (len(seen) + 0.5 * labels)
            logs[y] = math.log(share)
            for name in x if 1 + size < 40 else first:
                here = [label for there, label in seen if name in there]
                if 1 + size < 40:
                    logs[y] += math.log((here.count(y) + share) / (len(here) + 1.0) / share)
                else:
                    rate = (here.count(y) + 1.0) / (sum(label == y for _, label in seen[first[name] :]) + 2.0)
                    logs[y] += math.log(rate if name in x else 1.0 - rate)
        total = sum(math.exp(log - max(logs.values())) for log in logs.values())
        found = engine.predict_proba_one(x)
        for y, log in logs.items():
            assert found[y] == pytest.approx(math.exp(log - max(logs.values())) / total, rel=1e-9, abs=1e-300)


def test_the_default_learner_uses_words_as_naive_bayes_does() -> None:
    rng = np.random.default_rng(1)
    rows, y = [], []
    for _ in range(1500):
        label = int(rng.integers(2))
        common, own = rng.zipf(1.2, size=20), 20_000 + 300 * label + rng.integers(0, 500, size=4)
        rows.append({f"w{word}": 1.0 for word in (*np.minimum(common, 1000), *own)})
        y.append(label)
    errors = [
        np.mean(np.array(m.predict_learn_many(rows, y)) != y) for m in (varifold.AutoClassifier(), varifold.NB3())
    ]
    assert errors[0] < errors[1] + 0.02


@pytest.mark.parametrize("bound", [None, 7])
def test_kept_logarithms_follow_the_counts(bound: int | None) -> None:
    """A copy from a pickle has kept none: it predicts by the counts alone."""
    rng = random.Random(3)
    model = varifold.AutoClassifier("fast", max_features=bound)
    for step in range(400):
        names = [f"f{j}" for j in range(step // 40, step // 40 + 8) if rng.random() < 0.6]
        x = {name: rng.gauss(0.0, 1.0) for name in names}
        if step % 10 == 9:
            other = {f"f{j}": 0.5 for j in range(step // 40, step // 40 + 8) if rng.random() < 0.5}
            model.predict_proba_one(other)
            assert model.predict_proba_one(other) == pickle.loads(pickle.dumps(model)).predict_proba_one(other)
        model.learn_one(x, rng.choice("ab" if step < 60 else "abcde"), w=rng.choice([0.5, 1.0]))
        model.predict_proba_one(x)
