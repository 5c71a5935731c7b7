"""AROWRegressor follows its equations step by step, diagonal and full; with a full covariance it is least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linear.test_arow import AROUND, RULES
from tests.oracles.arowregressor import PlainAROWRegressor
from tests.oracles.harness import follow_numbers, mixed_stream, numbered
from varifold import AROWRegressor


def twin(learner: AROWRegressor) -> PlainAROWRegressor:
    return PlainAROWRegressor(learner.r, learner.covariance, learner.max_dense)


@pytest.mark.parametrize("around", AROUND, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_step(rule: dict[str, Any], around: dict[str, Any]) -> None:
    learner = AROWRegressor(**rule, **around)
    rows = numbered(mixed_stream(110, labels=3, weights=True, strings=True, seed=1))
    follow_numbers(learner, twin(learner), rows)


def test_the_covariance_grows_with_the_space() -> None:
    learner = AROWRegressor(covariance="full")
    rows = numbered(mixed_stream(160, labels=3, weights=True, strings=True, seed=5, names=40))
    follow_numbers(learner, twin(learner), rows)


def test_a_full_covariance_is_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ np.array([3.0, -2.0, 1.0, 0.5, 0.0]) + 0.1 * rng.normal(size=200)
    y[1::2] = -y[::2]  # the mean of the targets stays near 0, and ends there
    X[1::2] = -X[::2]
    model = AROWRegressor(r=2.0, covariance="full", scale="none", fit_intercept=False)
    means = []
    for row, target in zip(X, y, strict=True):
        model.learn_one({f"f{j}": float(v) for j, v in enumerate(row)}, float(target))
        means.append(model._engine.target.statistics.mean)
    ridge = np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ (y - np.array(means)))
    found = [model.predict_one({f"f{j}": 1.0}) - model._engine.target.statistics.mean for j in range(5)]
    np.testing.assert_allclose(found, ridge, rtol=1e-9, atol=1e-9)


def test_an_outlier_does_not_change_the_weights_of_features_that_are_absent() -> None:
    model = AROWRegressor()
    rng = np.random.default_rng(1)
    for _ in range(200):
        a = float(rng.normal())
        model.learn_one({"a": a}, 5.0 * a)
    before = model.explain_one({"a": 1.0})["a"]
    model.learn_one({"b": 1.0}, 1e9)
    assert model.explain_one({"a": 1.0})["a"] == pytest.approx(before, rel=1e-12)


def test_too_many_features_make_it_diagonal_and_are_noted() -> None:
    learner = AROWRegressor(covariance="full", max_dense=4)
    learner.learn_one({f"a{j}": 1.0 for j in range(4)}, 0.0)
    assert not any("max_dense" in note for note in learner.traits.notes)
    learner.learn_one({f"b{j}": 1.0 for j in range(4)}, 1.0)
    assert any("max_dense=4" in note for note in learner.traits.notes)


def test_enormous_values_and_targets_leave_finite_predictions() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for covariance in ("diagonal", "full"):
            model = AROWRegressor(r=0.1, covariance=covariance, scale="none")
            for _ in range(100):
                values = np.where(rng.random(10) < 0.1, 1e150, rng.normal(size=10) * 10.0 ** rng.integers(-3, 4, 10))
                x = {f"f{j}": float(values[j]) for j in range(10) if rng.random() < 0.5}
                assert np.isfinite(model.predict_one(x))
                model.learn_one(x, float(rng.choice([1e150, -1e150, 1.0, rng.normal()])))
