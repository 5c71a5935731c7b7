"""HalfSpaceTrees follows its oracle."""

from __future__ import annotations

import math
import random

import pytest

import varifold
from tests.anomaly.streams import follow, instances
from tests.oracles.halfspacetrees import HalfSpace


def test_follows_the_oracle() -> None:
    follow(varifold.HalfSpaceTrees(trees=5, depth=5, window=40, seed=3), HalfSpace(5, 5, 40, 3))


def test_a_new_feature_enters_the_trees_and_a_dead_one_leaves_them() -> None:
    model = varifold.HalfSpaceTrees(window=50)
    rng = random.Random(3)
    for step in range(600):
        old = {"old": rng.gauss(0, 1)} if step < 300 else {}
        new = {"new": rng.gauss(0, 1)} if step >= 300 else {}
        model.learn_one({"steady": rng.gauss(0, 1), **old, **new})
        if step == 299:
            assert model.explain_one({"steady": 0.0, "old": 9.0})["old"] > 0.5
    parts = model.explain_one({"steady": 0.0, "old": 9.0, "new": 9.0})
    assert parts["new"] > 0.5
    assert parts["old"] == 0.0


def test_an_absent_feature_changes_no_expectation() -> None:
    """The mean over the instances of a window, with and without a feature, is about the same."""
    model = varifold.HalfSpaceTrees(trees=60, window=250)
    rng = random.Random(5)
    rows = [{name: rng.gauss(0, 1) for name in "abcd"} for _ in range(1000)]
    for x in rows:
        model.learn_one(x)
    scores = [model.score_one(x) for x in rows[-250:]]
    without = [model.score_one({name: v for name, v in x.items() if name != "a"}) for x in rows[-250:]]
    assert abs(sum(scores)) / 250 < 0.1
    assert abs(sum(without)) / 250 < 0.1
    assert model.score_one({"unknown": 1.0}) == 0.0


def test_explanations_sum_to_the_score_with_absent_features() -> None:
    model = varifold.HalfSpaceTrees(window=60)
    rows = instances(300)
    model.learn_many(rows)
    for x in rows[-40:]:
        assert math.fsum(model.explain_one(x).values()) == pytest.approx(model.score_one(x), abs=1e-9)


@pytest.mark.parametrize("params", [{"trees": 61}, {"depth": 16}, {"window": 0}, {"depth": 0}])
def test_parameters_outside_their_range_are_rejected(params: dict[str, int]) -> None:
    with pytest.raises(varifold.errors.ParameterError, match=next(iter(params))):
        varifold.HalfSpaceTrees(**params)  # type: ignore[arg-type]
