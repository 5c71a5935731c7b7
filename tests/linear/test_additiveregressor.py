"""AdditiveRegressor follows its definition step by step, and learns curves that no line follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linear.test_arow import AROUND
from tests.oracles.additiveregressor import AdditiveSurroundings, PlainAdditiveRegressor
from tests.oracles.harness import follow_numbers, mixed_stream, numbered
from varifold import AdditiveRegressor, AROWRegressor


@pytest.mark.parametrize("around", AROUND, ids=str)
@pytest.mark.parametrize("rule", [{}, {"r": 0.3, "memory": 20.0}, {"max_binned": 4}], ids=str)
def test_every_step(rule: dict[str, Any], around: dict[str, Any]) -> None:
    learner = AdditiveRegressor(**rule, **around)
    twin = PlainAdditiveRegressor(learner.r, learner.max_binned, learner.memory)
    rows = numbered(mixed_stream(160, labels=3, weights=True, strings=True, seed=2))
    follow_numbers(learner, twin, rows, around=AdditiveSurroundings)


def test_a_long_stream_whose_samples_are_full() -> None:
    learner = AdditiveRegressor()
    twin = PlainAdditiveRegressor(learner.r, learner.max_binned, learner.memory)
    rows = numbered(mixed_stream(420, labels=3, weights=False, strings=False, seed=4, names=4))
    follow_numbers(learner, twin, rows, around=AdditiveSurroundings)


def test_a_hump_is_learned() -> None:
    rng = np.random.default_rng(0)
    errors = {"additive": 0.0, "line": 0.0}
    models = {"additive": AdditiveRegressor(), "line": AROWRegressor()}
    for t in range(2000):
        a = float(rng.normal())
        y = 10.0 * (abs(a) < 0.6) + float(rng.normal())
        for name, model in models.items():
            errors[name] += abs(model.predict_one({"a": a}) - y) * (t >= 1000)
            model.learn_one({"a": a}, y)
    assert errors["additive"] < 0.6 * errors["line"]


def test_contributions_are_those_of_the_curves() -> None:
    model = AdditiveRegressor()
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.normal(size=2).tolist()
        model.learn_one({"a": a, "b": b}, 5.0 * (a > 0.5))
    parts = model.explain_one({"a": 1.5, "b": 0.0})
    assert parts["a"] > 2.0
    assert abs(parts["b"]) < 1.0
    assert sum(parts.values()) == pytest.approx(model.predict_one({"a": 1.5, "b": 0.0}))
