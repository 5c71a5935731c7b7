"""Sample weights of any size leave finite numbers behind; what is not a weight is rejected."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.checks.material import is_regressor, predictions
from varifold.errors import DataError

WEIGHTS = [1e-300, 1e-9, 1.0, 1e12, 1e100, 1e140, 1e300, 1.7e308]


@pytest.mark.parametrize("name", sorted(varifold.models))
def test_any_weight_leaves_finite_numbers(name: str) -> None:
    rng = random.Random(1)
    learner = varifold.models[name]()
    for step in range(300):
        x = {f"f{rng.randrange(6)}": rng.choice([rng.gauss(0, 1), 1e150, -1e150, 0.0, 1e-200]) for _ in range(4)}
        y = rng.choice([0.0, 1.5, -1e150]) if is_regressor(learner) else rng.choice("abc")
        learner.learn_one(x, y, w=rng.choice(WEIGHTS))
        ((found, shares),) = predictions(learner, [(x, y)])
        assert all(np.isfinite(p) for p in ([found] if is_regressor(learner) else shares.values())), step
    for key, array in learner._engine.dump()[2].items():
        assert array.dtype.kind != "f" or np.isfinite(array).all(), key


def scales() -> list[tuple[str, str, int]]:
    """Every method with each scale that it has; many seeds for one, since they share the scaler."""
    found = []
    for name, cls in sorted(varifold.models.items()):
        every = ("robust", "standard", "minmax", "none") if "scale" in cls()._get_params() else ("",)
        found += [(name, scale, 30 if name == "arow" else 3) for scale in every]
    return found


@pytest.mark.parametrize(("name", "scale", "seeds"), scales())
def test_what_can_learn_can_be_saved(name: str, scale: str, seeds: int) -> None:
    """A mean of tiny weight may be rounded past the next value, which must not make squared deviations negative."""
    params = {"scale": scale} if scale else {}
    for seed in range(seeds):
        rng = random.Random(seed)
        learner = varifold.models[name](**params)
        for step in range(6):
            x = {f: rng.gauss(0, 1) for f in "abcd"} | ({"kind": rng.choice("xy")} if step % 2 else {})
            y = rng.gauss(0, 1) if is_regressor(learner) else rng.choice("pqr")
            learner.learn_one(x, y, w=rng.choice([1e-100, 1e-16, 1.0, 1e9]))
            copy = type(learner).from_bytes(learner.to_bytes())
            assert predictions(copy, [(x, y)]) == predictions(learner, [(x, y)])
        table = learner._engine.dump()[2]["scaler"]
        if params and scale in ("robust", "standard"):
            assert (table[:, 2] >= 0.0).all(), "squared deviations below 0"


@pytest.mark.parametrize("scale", ["robust", "standard", "minmax", "none"])
def test_targets_after_one_of_tiny_weight_have_a_deviation(scale: str) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        learner = varifold.MeanRegressor(scale=scale)
        for w in (1e-16, 1.0):
            learner.learn_one({"a": 1.0}, rng.gauss(0, 1), w=w)
        varifold.MeanRegressor.from_bytes(learner.to_bytes())


@pytest.mark.parametrize("name", [name for name in sorted(varifold.models) if name.endswith("regressor")])
def test_a_mean_of_targets_at_the_limit_is_not_rounded_past_it(name: str) -> None:
    learner = varifold.models[name]()
    for y, w in ((1e300, 1e-100), (9.9e149, 1e-100), (-1e150, 1.0)):
        learner.learn_one({"a": 1.0}, y, w=w)
    assert learner._engine.dump()[2]["target"][1] == -1e150
    type(learner).from_bytes(learner.to_bytes())


def test_a_large_weight_counts_as_the_largest_one() -> None:
    heavy, largest = varifold.AROW(), varifold.AROW()
    for step in range(20):
        x = {"a": step % 5, "b": step % 3}
        heavy.learn_one(x, step % 2, w=1e300)
        largest.learn_one(x, step % 2, w=1e9)
    assert heavy.margins_one({"a": 1.0}) == largest.margins_one({"a": 1.0})
    many = varifold.AROW()
    many.learn_many([{"a": s % 5, "b": s % 3} for s in range(20)], [s % 2 for s in range(20)], w=[1e300] * 20)
    assert many.margins_one({"a": 1.0}) == heavy.margins_one({"a": 1.0})


@pytest.mark.parametrize("weight", ["3", None, 1j, float("nan"), float("inf"), -1.0, [1.0]])
def test_what_is_not_a_weight_is_rejected(weight: Any) -> None:
    learner = varifold.OLVF()
    with pytest.raises(DataError, match="weight"):
        learner.learn_one({"a": 1.0}, "y", w=weight)
    with pytest.raises(DataError, match="weight"):
        learner.learn_many([{"a": 1.0}], ["y"], w=[weight])
    assert learner.steps == 0
    assert not learner.features
