"""NeighboursDetector follows its oracle."""

from __future__ import annotations

import random

import numpy as np
import pytest

import varifold
from tests.anomaly.streams import follow
from tests.oracles.neighboursdetector import Neighbours


def test_follows_the_oracle() -> None:
    follow(varifold.NeighboursDetector(k=3, window=50), Neighbours(3, 50))


def test_a_rare_string_is_unlike_the_others() -> None:
    """The column is compared, although hardly any instance has this value of it."""
    rng = random.Random(2)
    model = varifold.NeighboursDetector()
    for t in range(600):
        model.learn_one({"state": "odd" if t in (50, 580) else rng.choice("abc"), "site": rng.choice("xy")})
    usual = model.score_one({"state": "a", "site": "x"})
    assert model.score_one({"state": "odd", "site": "x"}) > usual + 0.5
    assert next(iter(model.explain_one({"state": "odd", "site": "x"}))) == "state=odd"
    assert model.score_one({"state": "never seen", "site": "x"}) <= usual


def test_absence_is_no_evidence() -> None:
    """Rows with many features are farther from their neighbours than rows with few; alarms do not prefer them."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12_000, 2)) @ rng.normal(size=(2, 10)) + 0.7 * rng.normal(size=(12_000, 10))
    X[rng.random(X.shape) > rng.choice([0.2, 0.5, 0.9], size=(len(X), 1))] = np.nan
    present = (~np.isnan(X)).sum(axis=1)
    _, p_values = varifold.NeighboursDetector().run_block(varifold.to_block(X))
    alarms, few, many = p_values[1000:] <= 0.01, present[1000:] <= 5, present[1000:] >= 9
    assert alarms[few].mean() == pytest.approx(0.01, rel=0.3)  # .006 and .021 by the distance alone
    assert alarms[many].mean() == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize("evict", ["oldest", "lightest"])
def test_evictions_leave_the_counts_that_a_saved_model_has(evict: str) -> None:
    """Columns of numbers, of strings and of both; the counts are not saved but made from the instances kept."""
    rng = random.Random(3)

    def row() -> dict[str, float | str]:
        return {f"c{rng.randrange(6)}": rng.choice([f"v{rng.randrange(12)}", rng.gauss(0, 1)]) for _ in range(3)}

    model = varifold.NeighboursDetector(window=30, max_features=6, evict=evict)
    for t in range(600):
        model.learn_one(row())
        if t % 20 == 0:
            loaded = varifold.from_bytes(model.to_bytes())
            for x in (row(), row(), row()):
                assert loaded.score_one(x) == model.score_one(x), t
