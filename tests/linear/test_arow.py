"""AROW follows its equations step by step, diagonal and full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracles.arow import PlainAROW
from tests.oracles.harness import follow, mixed_stream
from varifold import AROW

AROUND = [
    {"scale": "standard"},
    {"scale": "standard", "fit_intercept": False},
    {"scale": "none", "fit_intercept": False},
    {"scale": "minmax"},
    {"scale": "none", "max_features": 6},
    {"scale": "none", "max_features": 7, "evict": "lightest"},
]
RULES = [
    {},
    {"r": 0.1},
    {"covariance": "full"},
    {"covariance": "full", "r": 0.1},
    {"covariance": "full", "max_dense": 8},
]


def twin(learner: AROW) -> Any:
    return lambda: PlainAROW(learner.r, learner.covariance, learner.max_dense)


@pytest.mark.parametrize("around", AROUND, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_two_labels(rule: dict[str, Any], around: dict[str, Any]) -> None:
    learner = AROW(**rule, **around)
    follow(learner, twin(learner), mixed_stream(110, labels=2, weights=True, strings=True, seed=1))


@pytest.mark.parametrize("around", AROUND[::2], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_later_labels(rule: dict[str, Any], around: dict[str, Any]) -> None:
    learner = AROW(**rule, **around)
    follow(learner, twin(learner), mixed_stream(110, labels=4, weights=False, strings=True, seed=2))


def test_the_covariance_grows_with_the_space() -> None:
    learner = AROW(covariance="full")
    follow(learner, twin(learner), mixed_stream(160, labels=3, weights=True, strings=True, seed=5, names=40))


def test_too_many_features_make_it_diagonal_and_are_noted() -> None:
    learner = AROW(covariance="full", max_dense=4)
    learner.learn_one({f"a{j}": 1.0 for j in range(4)}, 0)
    assert not any("max_dense" in note for note in learner.traits.notes)
    learner.learn_one({f"b{j}": 1.0 for j in range(4)}, 1)
    assert any("max_dense=4" in note for note in learner.traits.notes)


def test_huge_values_do_not_break_the_full_covariance() -> None:
    learner = AROW(covariance="full", scale="none")
    for t in range(60):
        learner.learn_one({"a": 1e150 * (-1) ** t, "b": 1e-150, "c": float(t % 2)}, t % 2)
    assert all(np.isfinite(m) for m in learner.margins_one({"a": 1.0, "b": 1.0, "c": 1.0}).values())


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_full_covariance_outlives_enormous_values(fit_intercept):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = AROW(r=0.1, covariance="full", scale="none", fit_intercept=fit_intercept)
        for _ in range(100):
            values = np.where(rng.random(10) < 0.02, 1e150, rng.normal(size=10) * 10.0 ** rng.integers(-3, 4, 10))
            x = {f"f{j}": float(values[j]) for j in range(10) if rng.random() < 0.5}
            assert np.isfinite(list(model.margins_one(x).values())).all()
            model.learn_one(x, int(rng.integers(2)))


def test_a_full_covariance_of_many_features_and_labels_can_be_saved() -> None:
    """Most of it is zeros: a state that packs well must not look like a bomb."""
    learner = AROW(covariance="full", max_dense=1024)
    for k in range(8):
        learner.learn_one({f"f{i}": float(i % 5) for i in range(300) if k == 0 or i % 50 == k}, f"l{k}")
    data = learner.to_bytes()
    assert len(data) > 8 * 8 * 300 * 300
    loaded = AROW.from_bytes(data)
    assert loaded.to_bytes() == data
    assert loaded.margins_one({"f3": 1.0}) == learner.margins_one({"f3": 1.0})
