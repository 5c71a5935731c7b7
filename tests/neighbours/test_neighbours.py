import math
import random

import numpy as np
import pytest

import varifold
from tests.engines import class_engine
from varifold.neighbours._neighbours import NeighboursModel


class Oracle:
    """Distances and votes written out."""

    def __init__(self, k, window):
        self.k, self.window, self.rows, self.counts = k, window, [], {}

    def scores(self, x, classes):
        far = []
        for place, (row, y) in enumerate(self.rows):
            shared = set(row) & set(x)
            d = (2.0 * 2.0 + sum((row[f] - x[f]) ** 2 for f in shared)) / (2.0 + len(shared))
            far.append((d, place, y))
        nearest = sorted(far)[: self.k]
        total = sum(self.counts.values())
        return {c: np.log(self.counts[c] / total + sum(y == c for _, _, y in nearest)) for c in classes}

    def learn(self, x, y):
        self.counts[y] = self.counts.get(y, 0) + 1
        if len(self.rows) < self.window:
            self.rows.append((x, y))
        else:
            self.rows[(sum(self.counts.values()) - 1) % self.window] = (x, y)


def test_follows_the_oracle_through_a_full_window():
    rng = np.random.default_rng(0)
    model, oracle = varifold.Neighbours(k=3, window=40, scale="none"), Oracle(3, 40)
    for _ in range(150):
        x = {f"f{j}": float(v) for j, v in enumerate(rng.normal(size=5)) if rng.random() < 0.7} or {"f0": 0.0}
        y = "abc"[int(3 * rng.random())]
        if model.classes and any(f in model.features for f in x):
            found = model.margins_one(x)
            assert found == pytest.approx(oracle.scores(x, model.classes), abs=1e-6)
        model.learn_one(x, y)
        oracle.learn(x, y)


def test_an_evicted_feature_leaves_the_window():
    model = varifold.Neighbours(max_features=4, scale="none")
    for t in range(60):
        model.learn_one({f"f{t % 12}": 1.0, "g": float(t % 2)}, t % 2)
    _, _, arrays = model._engine.dump()
    live = set(model._engine.space.live())
    assert set(arrays["model.slots"].tolist()) <= live


@pytest.mark.parametrize(("k", "window", "widest"), [(0, 5, 5), (65, 5, 5), (1, 0, 5), (1, 5, 0)])
def test_a_model_rejects_sizes_it_has_no_memory_for(k, window, widest):
    with pytest.raises(ValueError, match="is 1 to 64"):
        NeighboursModel(k, window, widest)


def growing(count, seed=0):
    """Instances of which each brings a few features."""
    rng = np.random.default_rng(seed)
    for step in range(count):
        names = rng.choice(10 + 2 * step, size=8, replace=False)
        yield {f"f{j}": float(rng.normal()) for j in names}, "ab"[int(rng.integers(2))]


def test_predictions_are_the_same_with_a_table_of_values_and_without():
    """Of 3,000 instances the table holds at most 87 features, of 100 for 2,621."""
    tabled, plain = varifold.Neighbours(k=3, window=100), varifold.Neighbours(k=3, window=3000)
    for step, (x, y) in enumerate(growing(100)):
        if step > 2:
            assert tabled.margins_one(x) == plain.margins_one(x)
        tabled.learn_one(x, y)
        plain.learn_one(x, y)
    assert len(plain.features) > 100
    table = 100 * len(tabled.features) * 8
    assert tabled.state_bytes()["model"] > table > plain.state_bytes()["model"] - 3000 * 80


def test_a_table_follows_the_ring_and_what_is_forgotten():
    """A loaded learner makes its table from the instances."""
    model = varifold.Neighbours(k=3, window=20, max_features=12)
    for step, (x, y) in enumerate(growing(120, 1)):
        if step % 5 == 4:
            again = varifold.Neighbours.from_bytes(model.to_bytes())
            assert again.margins_one(x) == model.margins_one(x)
        model.learn_one(x, y)


def test_values_of_single_precision_take_half_the_memory():
    engines = [class_engine(NeighboursModel(3, 50, single=single)) for single in (False, True)]
    for x, y in growing(60):
        for engine in engines:
            engine.learn_one(x, y)
    whole, single = (engine.dump()[2]["model.x"] for engine in engines)
    assert (single == whole.astype(np.float32)).all()
    assert (single != whole).any()


def test_evicted_features_are_removed_before_their_slots_are_used_again():
    """They are removed many at a time; predictions and files in between must not show it."""
    model, often, shown = varifold.Neighbours(max_features=40), varifold.Neighbours(max_features=40), []
    for t in range(400):
        x = {f"word {(t * 7 + j * j) % 300}": 1.0 for j in range(8)} | {"kept": float(t % 2)}
        shown.append(x)
        assert often.predict_proba_one(x) == model.predict_proba_one(x)
        for learner in (model, often):
            learner.learn_one(x, t % 2)
        if t % 20 == 0:
            names, _, arrays = often._engine.dump()
            rows = np.split(arrays["model.slots"], arrays["model.ends"][1:-1])
            assert all({names[slot] for slot in row} <= set(x) for row, x in zip(rows, shown, strict=True))
    assert often.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("name", ["neighbours", "neighboursregressor"])
def test_the_largest_features_of_a_wide_instance_are_explained(name):
    rng = random.Random(2)
    model = varifold.models[name](scale="none", k=3)
    rows = [{f"f{i}": rng.gauss(0, 1) for i in range(1_500)} for _ in range(12)]
    for step, x in enumerate(rows):
        model.learn_one(x, step % 2)
    x = rows[-1] | {"f7": 90.0, "f1400": -80.0}
    parts = model.explain_one(x)
    score = model.predict_one(x) if name == "neighboursregressor" else model.margins_one(x)[model.predict_one(x)]
    assert math.fsum(parts.values()) == pytest.approx(score, abs=1e-9)
    largest = sorted(x, key=lambda feature: -abs(x[feature]))[:512]
    assert {feature for feature, part in parts.items() if part != 0.0 and feature in x} <= set(largest)
    narrow = {feature: x[feature] for feature in largest[:400]}
    whole = model.explain_one(narrow)
    for left_out in largest[:3]:
        without = {feature: value for feature, value in narrow.items() if feature != left_out}
        if name == "neighboursregressor":
            expected = model.predict_one(narrow) - model.predict_one(without)
        else:
            label = model.predict_one(narrow)
            expected = model.margins_one(narrow)[label] - model.margins_one(without)[label]
        assert whole.get(left_out, 0.0) == pytest.approx(expected, abs=1e-9)
