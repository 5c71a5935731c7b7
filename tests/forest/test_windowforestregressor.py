"""WindowForestRegressor against its oracle, step by step; what it learns, forgets, saves and reports."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from tests.forest.test_windowforest import SETTINGS
from tests.oracles.by_column import Labelled, follow, row_of, stream
from tests.oracles.windowforest import SAMPLE
from tests.oracles.windowforestregressor import WindowForestRegressorOracle
from varifold import WindowForestRegressor, from_bytes, to_block


def numbered(rows: Labelled, seed: int = 0) -> Labelled:
    """The rows with numbers in place of their labels."""
    rng = random.Random(seed)
    return [(x, 100.0 + 12.0 * ord(y) + rng.gauss(0.0, 3.0) + 2.0 * len(x), w) for x, y, w in rows]


def weights_agree(model: WindowForestRegressor, oracle: WindowForestRegressorOracle) -> None:
    slot_of = model._engine.space.id_of
    weights = {n: f.weight for n, f in model.features.items()}
    assert weights == pytest.approx({n: oracle.importance.get(slot_of(n), 0.0) for n in weights}, abs=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
def test_follows_the_oracle(name: str) -> None:
    settings = SETTINGS[name]
    model = WindowForestRegressor(**settings)
    oracle = WindowForestRegressorOracle(**{k: v for k, v in settings.items() if k not in ("max_features", "evict")})
    follow(model, oracle, numbered(stream(240, labels="abcd")))
    assert model._engine.model.forest.grown == oracle.grown
    assert model._engine.model.forest.begun == oracle.begun > 5
    weights_agree(model, oracle)


def test_follows_the_oracle_through_a_drift() -> None:
    rng = random.Random(2)
    rows: Labelled = []
    for t in range(420):
        x = {"a": rng.random(), "b": rng.random(), "s": rng.choice("pqr")}
        rows.append((x, 10.0 * ((x["a"] > 0.5) != (t > 300)) + rng.gauss(0.0, 0.5), 1.0))
    model, oracle = WindowForestRegressor(trees=5), WindowForestRegressorOracle(trees=5)
    follow(model, oracle, rows)
    assert oracle.falls == 1
    assert model._engine.model.forest.length == oracle.length < 170


def test_follows_the_oracle_through_a_drift_that_passes() -> None:
    """The trees from before win the trial, and trees are grown on all rows again."""
    rng = random.Random(3)
    rows: Labelled = []
    for t in range(860):
        x = {"a": rng.random(), "b": rng.random()}
        rows.append((x, 10.0 * ((x["a"] > 0.5) != (300 < t < 350)) + rng.gauss(0.0, 0.5), 1.0))
    settings = {"trees": 2, "window": 400, "cuts": 4, "columns": 1.0, "min_leaf": 20}
    model, oracle = WindowForestRegressor(**settings), WindowForestRegressorOracle(**settings)
    follow(model, oracle, rows)
    assert oracle.falls > 0
    assert oracle.revivals == 1
    assert model._engine.model.forest.length == oracle.length == 400


def test_follows_the_oracle_beyond_the_sample_that_splits_are_chosen_by() -> None:
    settings = {"trees": 1, "cuts": 3, "min_leaf": 60, "columns": 0.0}
    model, oracle = WindowForestRegressor(**settings), WindowForestRegressorOracle(**settings)
    follow(model, oracle, numbered(stream(700, seed=8)))
    assert oracle.grown_on > 500 > SAMPLE
    weights_agree(model, oracle)


def test_explanations_are_the_oracles() -> None:
    model, oracle = WindowForestRegressor(trees=6), WindowForestRegressorOracle(trees=6)
    rows = numbered(stream(200, seed=5, labels="abc"))
    follow(model, oracle, rows)
    slot_of, name_of = model._engine.space.id_of, model._engine.space.name_of
    for x, _, _ in rows[-40:]:
        row = row_of(x, slot_of)
        here = {key // 2: name_of(int(v) if key % 2 else key // 2) for key, v in row.items()}
        expected = oracle.parts(row)
        found = model.explain_one(x)
        assert math.fsum(found.values()) == pytest.approx(model.predict_one(x), abs=1e-9)
        assert found.pop("(intercept)") == pytest.approx(expected.pop(0), abs=1e-7)
        named = {here.get(slot, f"{name_of(slot)} (absent)"): part for slot, part in expected.items()}
        assert {n: p for n, p in found.items() if abs(p) > 1e-9} == pytest.approx(
            {n: p for n, p in named.items() if abs(p) > 1e-9}, abs=1e-9
        )


# ---------------------------------------------------------------- what it learns


def error(model: WindowForestRegressor, rows: list[tuple[dict[str, Any], float]]) -> float:
    """Mean absolute error of the last third, each instance predicted and then learned."""
    found = model.predict_learn_many([x for x, _ in rows], [y for _, y in rows])
    return float(np.mean([abs(p - y) for p, (_, y) in zip(found, rows, strict=True)][-len(rows) // 3 :]))


def test_learns_a_product_of_two_among_ten() -> None:
    rng = random.Random(0)
    rows = []
    for _ in range(3000):
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(10)}
        rows.append((x, 10.0 * ((x["f0"] > 0) != (x["f1"] > 0))))
    assert error(WindowForestRegressor(), rows) < 2.0, "5 without the product"


def test_learns_from_absence_alone() -> None:
    rng = random.Random(2)
    rows = []
    for _ in range(500):
        broken = rng.random() < 0.5
        rows.append(({"noise": rng.random(), **({} if broken else {"sensor": rng.random()})}, 30.0 if broken else 10.0))
    assert error(WindowForestRegressor(), rows) < 1.0


def test_recovers_after_a_sudden_change() -> None:
    rng = random.Random(5)
    rows = []
    for t in range(1500):
        x = {name: rng.random() for name in "abcd"}
        rows.append((x, 10.0 * ((x["a"] > 0.5) != (t >= 1000)) + rng.gauss(0.0, 1.0)))
    model = WindowForestRegressor()
    assert error(model, rows) < 2.0
    assert model._engine.model.forest.length < 600


def test_enormous_targets_leave_finite_predictions_and_weights() -> None:
    rng = random.Random(6)
    model = WindowForestRegressor(window=60)
    for _ in range(400):
        x = {name: rng.random() for name in "abcd"}
        model.learn_one(x, rng.choice([1e150, -1e150, 5e-324, 1.0, rng.gauss(0.0, 1.0)]))
        assert math.isfinite(model.predict_one(x))
    assert all(math.isfinite(f.weight) for f in model.features.values())


def test_neither_size_nor_level_of_the_targets_costs_digits() -> None:
    """Targets that differ by 1 around a billion are separated as those around 0 are."""
    rng = random.Random(7)
    rows = [{name: rng.random() for name in "abc"} for _ in range(400)]
    low, high = WindowForestRegressor(), WindowForestRegressor()
    for x in rows:
        low.learn_one(x, float(x["a"] > 0.5))
        high.learn_one(x, 1e9 + float(x["a"] > 0.5))
    for x in rows[:50]:
        assert high.predict_one(x) - 1e9 == pytest.approx(low.predict_one(x), abs=1e-6)


# ---------------------------------------------------------------- files and bounds


def test_a_restored_learner_goes_on_to_the_bit() -> None:
    """Restored again and again, also while a tree grows."""
    model = WindowForestRegressor(trees=2, window=80, max_features=9)
    twin, growing = model.clone(), 0
    for t, (x, y, w) in enumerate(numbered(stream(400, seed=6, labels="abc"))):
        assert model.predict_one(x) == twin.predict_one(x)
        model.learn_one(x, y, w)
        twin.learn_one(x, y, w)
        if t % 5 == 0:
            twin = from_bytes(twin.to_bytes())
            growing += len(twin._engine.dump()[2]["model.growth.pending"]) > 0
    assert growing > 10
    assert model.to_bytes() == twin.to_bytes()


def test_memory_is_bounded_by_the_window() -> None:
    rng = random.Random(7)
    model = WindowForestRegressor(window=100, trees=5, min_leaf=4)
    rows = [{name: rng.random() for name in "abc"} for _ in range(3000)]
    model.learn_many(to_block(rows, [rng.random() for _ in rows], numeric=True))
    _, _, arrays = model._engine.dump()
    assert len(arrays["model.window.y"]) == 100 + 100 // 5 + 1
    assert len(arrays["model.node.key"]) <= 2 * (1 + 6 * 100 // 4)
