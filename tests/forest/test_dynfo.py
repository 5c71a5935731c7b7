"""DynFo against its oracle, step by step; what it learns, forgets and reports."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from tests.oracles.by_column import follow, place_of, stream
from tests.oracles.dynfo import PlainDynFo
from varifold import DynFo

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "lively": {"M": 9, "N": 30, "delta": 0.5, "beta": 0.2, "theta2": 0.9, "max_draws": 2, "seed": 7},
    "dropping": {
        "M": 12,
        "N": 20,
        "delta": 1.0,
        "max_draws": None,
        "epsilon": 0.3,
        "gamma": 0.2,
        "theta1": 0.4,
        "theta2": 0.2,
    },
    "bounded": {"M": 15, "N": 40, "delta": 0.4, "max_features": 6},
    "lightest": {"M": 15, "N": 40, "delta": 0.4, "max_features": 7, "evict": "lightest", "seed": 3},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_follows_the_oracle(name: str, labels: str) -> None:
    settings = SETTINGS[name]
    model = DynFo(**settings)
    oracle = PlainDynFo(**{k: v for k, v in settings.items() if k not in ("max_features", "evict")})
    follow(model, oracle, stream(180, labels=labels), tolerance=1e-12)
    assert oracle.again > 20
    assert len(model.stumps()) == len([stump for stump in oracle.stumps if stump.key])
    for feature, held in model.features.items():
        assert held.weight == pytest.approx(oracle.weight(*place_of(model, feature)[:2]), abs=1e-12)
    if name == "dropping":
        assert min(oracle.dropped, oracle.added) > 10
    if "max_features" in settings:
        assert model._engine.space.evictions > 3


def sensors(n: int, seed: int = 0) -> list[tuple[dict[str, Any], str, float]]:
    """Two numbers and a string that decide, each absent half of the time, and noise; the rule turns round half-way."""
    rng = random.Random(seed)
    rows = []
    for t in range(n):
        y = rng.random() < 0.5
        shift = 1.5 if y != (t >= n // 2) else -1.5
        x = {"a": rng.gauss(shift, 1.0), "b": rng.gauss(-shift, 1.0), "state": "on" if shift > 0 else "off"}
        x |= {f"noise {j}": rng.gauss(0.0, 1.0) for j in range(3)}
        rows.append(({name: value for name, value in x.items() if rng.random() < 0.5}, f"label {y}", 1.0))
    return rows


def test_learns_and_follows_a_change() -> None:
    model = DynFo(M=50, N=60)
    wrong = []
    for x, y, w in sensors(800):
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y, w)
    assert sum(wrong[200:400]) / 200 < 0.25
    assert sum(wrong[600:]) / 200 < 0.25


def test_explanations_and_stumps_name_what_decides() -> None:
    model = DynFo(M=50)
    for x, y, w in sensors(400)[:200]:
        model.learn_one(x, y, w)
    x = {"a": 2.5, "state": "on", "noise 0": 0.1}
    for label in model.classes:
        parts = model.explain_one(x, label)
        assert sum(parts.values()) == pytest.approx(model.margins_one(x)[label], abs=1e-12)
    parts = model.explain_one(x, "label True")
    assert min(parts["a"], parts["state=on"]) > 2 * abs(parts["noise 0"])
    weights = [stump.weight for stump in model.stumps()]
    assert weights == sorted(weights, reverse=True)
    best = model.stumps()[0]
    assert best.feature in ("a", "b", "state")
    assert all(sum(side.values()) == pytest.approx(1.0) for side in best.sides)
    assert {stump.at for stump in model.stumps() if stump.feature == "state"} <= {"on", "off"}


def test_an_instance_that_no_stump_can_judge_gets_the_frequencies() -> None:
    model = DynFo(M=1, N=5, delta=0.0)
    for y in "aab":
        model.learn_one({"x": 1.0}, y)
    model.learn_one({"other": 1.0, "x": 1.0}, "a")
    split = model.stumps()[0].feature
    lone = "other" if split == "x" else "x"
    assert model.predict_proba_one({lone: 1.0}) == {"a": pytest.approx(0.75), "b": pytest.approx(0.25)}


def test_neighbouring_doubles_are_distinguished() -> None:
    low, high = 1.0, math.nextafter(1.0, 2.0)
    model = DynFo(M=3)
    for step in range(200):
        model.learn_one({"x": high if step % 2 else low}, step % 2)
    assert [model.predict_one({"x": value}) for value in (low, high)] == [0, 1]
    below = math.nextafter(high, 3.0)
    for step in range(200):
        model.learn_one({"x": below if step % 2 else high}, step % 2)
    assert [model.predict_one({"x": value}) for value in (high, below)] == [0, 1]
