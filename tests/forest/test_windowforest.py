"""WindowForest against its oracle, step by step; what it learns, forgets, saves and reports."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.by_column import Labelled, follow, row_of, stream
from tests.oracles.windowforest import SAMPLE, WindowForestOracle
from varifold import WindowForest, from_bytes, to_block
from varifold._engine.engine import Engine
from varifold.forest._windowforest import WindowForestModel

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "slow": {"trees": 1, "window": 120, "min_leaf": 1},
    "small": {"trees": 3, "window": 40, "columns": 1.0, "cuts": 4, "min_leaf": 1, "smoothing": 0.3, "seed": 7},
    "bounded": {"trees": 4, "window": 60, "max_features": 7},
    "lightest": {"trees": 4, "window": 90, "max_features": 8, "evict": "lightest", "seed": 3},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", "abcd"])
def test_follows_the_oracle(name: str, labels: str) -> None:
    settings = SETTINGS[name]
    model = WindowForest(**settings)
    oracle = WindowForestOracle(**{k: v for k, v in settings.items() if k not in ("max_features", "evict")})
    follow(model, oracle, stream(260, labels=labels))
    assert model._engine.model.grown == oracle.grown
    assert model._engine.model.begun == oracle.begun > 5
    slot_of = model._engine.space.id_of
    weights = {n: f.weight for n, f in model.features.items()}
    assert weights == pytest.approx({n: oracle.importance.get(slot_of(n), 0.0) for n in weights}, abs=1e-12)


def test_follows_the_oracle_with_many_labels() -> None:
    rng = random.Random(9)
    rows: Labelled = []
    for t in range(200):
        y = rng.randrange(1 + min(t, 50))
        rows.append(({"a": rng.gauss(y, 1.0), "b": rng.gauss(-y, 2.0)}, f"label {y}", 1.0))
    model, oracle = WindowForest(trees=3, min_leaf=1), WindowForestOracle(trees=3, min_leaf=1)
    follow(model, oracle, rows)
    assert oracle.fewest() > 1


def test_follows_the_oracle_through_a_drift() -> None:
    rng = random.Random(2)
    rows: Labelled = []
    for t in range(420):
        x = {"a": rng.random(), "b": rng.random(), "s": rng.choice("pqr")}
        rows.append((x, (x["a"] > 0.5) != (t > 300), 1.0))
    model, oracle = WindowForest(trees=5), WindowForestOracle(trees=5)
    follow(model, oracle, rows)
    assert oracle.falls == 1
    assert model._engine.model.length == oracle.length < 170


def test_follows_the_oracle_through_a_drift_that_passes() -> None:
    """The trees from before win the trial, and trees are grown on all rows again."""
    rng = random.Random(3)
    rows: Labelled = []
    for t in range(860):
        x = {"a": rng.random(), "b": rng.random()}
        rows.append((x, (x["a"] > 0.5) != (300 < t < 350), 1.0))
    settings = {"trees": 2, "window": 400, "cuts": 4, "columns": 1.0}
    model, oracle = WindowForest(**settings), WindowForestOracle(**settings)
    follow(model, oracle, rows)
    assert oracle.falls > 0
    assert oracle.revivals == 1
    assert model._engine.model.length == oracle.length == 400


def test_follows_the_oracle_beyond_the_sample_that_splits_are_chosen_by() -> None:
    settings = {"trees": 1, "cuts": 3, "min_leaf": 60, "columns": 0.0}
    model, oracle = WindowForest(**settings), WindowForestOracle(**settings)
    follow(model, oracle, stream(1300, seed=8))
    assert oracle.grown_on > 1000 > SAMPLE
    weights = {n: f.weight for n, f in model.features.items()}
    slot_of = model._engine.space.id_of
    assert weights == pytest.approx({n: oracle.importance.get(slot_of(n), 0.0) for n in weights}, abs=1e-12)


def test_follows_the_oracle_when_there_are_too_many_features_for_a_table() -> None:
    rng = random.Random(4)
    rows: Labelled = [({f"f{j}": 0.0 for j in range(2000)}, True, 1.0)]
    for _ in range(200):
        x: dict[str, Any] = {f"f{rng.randrange(2000)}": rng.gauss(0.0, 1.0) for _ in range(6)}
        rows.append(({**x, "f0": rng.random(), "f1": rng.random()}, rng.random() < 0.5, 1.0))
    model, oracle = WindowForest(trees=3, min_leaf=1), WindowForestOracle(trees=3, min_leaf=1)
    follow(model, oracle, rows)
    assert model._engine.model.nbytes() < 8 * 2000 * 200, "no table"


def test_explanations_are_the_oracles() -> None:
    model, oracle = WindowForest(trees=6), WindowForestOracle(trees=6)
    rows = stream(200, seed=5, labels="abc")
    follow(model, oracle, rows)
    slot_of, name_of = model._engine.space.id_of, model._engine.space.name_of
    for x, _, _ in rows[-40:]:
        row = row_of(x, slot_of)
        here = {key // 2: name_of(int(v) if key % 2 else key // 2) for key, v in row.items()}
        for c, label in enumerate(oracle.labels):
            expected = oracle.explained(row, c)
            found = model.explain_one(x, label)
            assert math.fsum(found.values()) == pytest.approx(model.margins_one(x)[label], abs=1e-12)
            assert found["(intercept)"] == pytest.approx(expected.pop(0), abs=1e-9)
            named = {here.get(slot, f"{name_of(slot)} (absent)"): part for slot, part in expected.items()}
            assert {n: p for n, p in found.items() if p and n != "(intercept)"} == pytest.approx(
                {n: p for n, p in named.items() if p}, abs=1e-9
            )


# ---------------------------------------------------------------- what it learns


def errors(model: WindowForest, rows: Labelled) -> float:
    """Error of the last third, each instance predicted and then learned."""
    block = to_block([x for x, _, _ in rows], [y for _, y, _ in rows])
    found = model.predict_learn_many(block)
    wrong = [p != y for p, (_, y, _) in zip(found, rows, strict=True)]
    return float(np.mean(wrong[-len(rows) // 3 :]))


def test_learns_an_exclusive_or_of_two_among_ten() -> None:
    rng = random.Random(0)
    rows: Labelled = []
    for _ in range(1500):
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(10)}
        rows.append((x, (x["f0"] > 0) != (x["f1"] > 0), 1.0))
    assert errors(WindowForest(), rows) < 0.12


def test_learns_a_pair_of_categories() -> None:
    rng = random.Random(1)
    prediction = {(a, b): rng.random() < 0.5 for a in "uvwxyz" for b in "uvwxyz"}
    rows: Labelled = []
    for _ in range(1500):
        x = {f"c{i}": rng.choice("uvwxyz") for i in range(5)}
        rows.append((x, prediction[x["c0"], x["c1"]], 1.0))
    assert errors(WindowForest(), rows) < 0.08


def test_learns_from_absence_alone() -> None:
    rng = random.Random(2)
    rows: Labelled = []
    for _ in range(400):
        y = rng.random() < 0.5
        rows.append(({"noise": rng.random(), **({} if y else {"sensor": rng.random()})}, y, 1.0))
    assert errors(WindowForest(), rows) < 0.02


def test_another_level_is_not_an_absence() -> None:
    """The label is determined by 'red', and absences go with the other levels in half of the stream only."""
    rng = random.Random(3)
    model = WindowForest()
    for _ in range(400):
        colour = rng.choice(["red", "blue", "green", None])
        model.learn_one({"n": rng.random(), **({"colour": colour} if colour else {})}, colour in ("red", None))
    found = [model.predict_one({"n": 0.5, **x}) for x in ({"colour": "red"}, {"colour": "blue"}, {})]
    assert found == [True, False, True]


def test_goes_on_improving_while_the_window_grows() -> None:
    rng = random.Random(4)
    rows: Labelled = []
    for _ in range(6000):
        x = {name: rng.random() for name in "abcd"}
        rows.append((x, math.sin(7 * x["a"]) + math.sin(9 * x["b"]) > x["c"], 1.0))
    long, short = errors(WindowForest(), rows), errors(WindowForest(window=500), rows)
    assert long < 0.75 * short


def test_recovers_after_a_sudden_change() -> None:
    rng = random.Random(5)
    rows: Labelled = []
    for t in range(1500):
        x = {name: rng.random() for name in "abcd"}
        rows.append((x, (x["a"] > 0.5) != (t >= 1000), 1.0))
    model = WindowForest()
    assert errors(model, rows) < 0.15
    assert model._engine.model.length < 600


# ---------------------------------------------------------------- files and bounds


def test_a_restored_learner_goes_on_to_the_bit() -> None:
    """Restored again and again, also while a tree grows."""
    model = WindowForest(trees=2, window=80, max_features=9)
    twin, growing = model.clone(), 0
    for t, (x, y, w) in enumerate(stream(400, seed=6, labels="abc")):
        if t:
            assert model.predict_proba_one(x) == twin.predict_proba_one(x)
        model.learn_one(x, y, w)
        twin.learn_one(x, y, w)
        if t % 5 == 0:
            twin = from_bytes(twin.to_bytes())
            growing += len(twin._engine.dump()[2]["model.growth.pending"]) > 0
    assert growing > 10
    assert model.to_bytes() == twin.to_bytes()


def test_an_evicted_feature_is_in_no_row_and_no_split() -> None:
    model = WindowForest(max_features=5, window=100)
    for t in range(300):
        model.learn_one({f"f{t // 20 % 9}": float(t % 5), "s": f"v{t // 15 % 8}", "g": float(t % 2)}, t % 3)
        _, _, arrays = model._engine.dump()
        space = model._engine.space
        live = {space.id_of(name) for name in model.features} | {space.id_of("s")}
        for part in ("window.keys", "node.key"):
            assert {key // 2 for key in arrays[f"model.{part}"].tolist() if key} <= live
        levels = arrays["model.window.values"][arrays["model.window.keys"] % 2 == 1]
        assert {int(level) for level in levels if level} <= live


def test_memory_is_bounded_by_the_window() -> None:
    rng = random.Random(7)
    model = WindowForest(window=100, trees=5, min_leaf=4)
    for _ in range(3000):
        model.learn_one({name: rng.random() for name in "abc"}, rng.random() < 0.5)
    _, _, arrays = model._engine.dump()
    assert len(arrays["model.window.y"]) == 100 + 100 // 5 + 1
    assert len(arrays["model.node.key"]) <= 2 * (1 + 6 * 100 // 4)
    table = 121 * 16 * 8
    assert model._engine.model.nbytes() < table + 121 * (64 + 3 * 12) + 2 * (1 + 7 * 100 // 4) * 40 + 6000


def bounded(numbers: int, narrow: float = 0.0) -> Engine:
    return class_engine(WindowForestModel(4, 5000, 2.0, 8, 2, 1.0, 0, numbers, narrow=narrow), scale="none")


def wide(n: int, seed: int = 0) -> Labelled:
    """Thirty numbers, about half of them present."""
    rng = random.Random(seed)
    rows: Labelled = []
    for _ in range(n):
        x = {f"f{i}": rng.gauss(0.0, 1.0) for i in range(30) if rng.random() < 0.5}
        rows.append((x, (x.get("f0", 0.0) > 0) != (x.get("f1", 0.0) > 0), 1.0))
    return rows


def test_a_window_stops_growing_when_it_holds_as_many_numbers_as_it_may() -> None:
    free, few, none = bounded(0), bounded(24_000), bounded(1000)
    for x, y, _ in wide(2500):
        for engine in (free, few, none):
            engine.learn_one(x, y)
    assert free.model.length == 2500
    assert 1200 < few.model.length < 1400, "24,000 numbers are about 1,600 rows, a fifth of them held in reserve"
    assert none.model.length == 800, "1,000 rows are always kept"
    held = few.dump()[2]
    assert abs(len(held["model.window.values"]) - 24_000) < 500
    assert few.model.nbytes() < 0.7 * free.model.nbytes()


def test_narrow_rows_fill_the_whole_window() -> None:
    """Of about 15 numbers a row: below the bound of 20 they go on, above that of 10 they do not."""
    under, over, again = bounded(16_000, narrow=20.0), bounded(16_000, narrow=10.0), bounded(16_000, narrow=20.0)
    rows = wide(1800, seed=2)
    for x, y, _ in rows[:1500]:
        under.learn_one(x, y)
        over.learn_one(x, y)
    assert len(under.dump()[2]["model.window.y"]) == 1500
    assert len(over.dump()[2]["model.window.y"]) < 1200
    again.fill(*under.dump())
    for x, y, _ in rows[1500:]:
        under.learn_one(x, y)
        again.learn_one(x, y)
    assert all((a == b).all() for a, b in zip(under.dump()[2].values(), again.dump()[2].values(), strict=True))


@pytest.mark.parametrize("stop", [999, 1000, 1001, 1003, 1200])
def test_a_bounded_window_goes_on_to_the_bit_when_loaded(stop: int) -> None:
    rows = wide(1600, seed=1)
    engine, again = bounded(1000), bounded(1000)
    for x, y, _ in rows[:stop]:
        engine.learn_one(x, y)
    again.fill(*engine.dump())
    for x, y, _ in rows[stop:]:
        assert again.predict_proba_one(x) == engine.predict_proba_one(x)
        engine.learn_one(x, y)
        again.learn_one(x, y)
    assert all((a == b).all() for a, b in zip(engine.dump()[2].values(), again.dump()[2].values(), strict=True))


def test_a_window_that_stopped_growing_and_then_lost_a_feature_has_stopped_when_loaded() -> None:
    engine, again = bounded(18_000), bounded(18_000)
    rows = iter(wide(1600, seed=1))
    while engine.dump()[2]["model.window.values"].size < 18_000 or engine.step < 1000:
        x, y, _ = next(rows)
        engine.learn_one({**x, "old": 1.0, "new": 2.0}, y)
    engine.rename({"old": "new"})
    held = engine.dump()[2]
    assert held["model.window.values"].size < 18_000
    assert held["model.window.most"] == held["model.window.taken"] == engine.step
    again.fill(*engine.dump())
    for x, y, _ in rows:
        assert again.predict_proba_one(x) == engine.predict_proba_one(x)
        engine.learn_one(x, y)
        again.learn_one(x, y)
    assert len(engine.dump()[2]["model.window.y"]) == held["model.window.taken"]
    assert all((a == b).all() for a, b in zip(engine.dump()[2].values(), again.dump()[2].values(), strict=True))


def test_evicted_features_are_removed_before_their_slots_are_used_again():
    """They are removed many at a time; predictions and files in between must not show it."""
    model, often, shown = WindowForest(max_features=40), WindowForest(max_features=40), []
    for t in range(900):
        x = {f"word {(t * 7 + j * j) % 300}": 1.0 for j in range(8)} | {"kept": float(t % 2)}
        shown.append(x)
        assert often.predict_proba_one(x) == model.predict_proba_one(x)
        for learner in (model, often):
            learner.learn_one(x, t % 2)
        if t % 20 == 0:
            names, _, arrays = often._engine.dump()
            keys = np.split(arrays["model.window.keys"], arrays["model.window.ends"][1:-1])
            assert all({names[key >> 1] for key in row} <= set(x) for row, x in zip(keys, shown, strict=True))
    assert often.to_bytes() == model.to_bytes()
