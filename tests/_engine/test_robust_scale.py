"""scale="robust": against plain Python, both APIs, files, and what it is for: words, outliers, units."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import varifold
from tests.oracles.robust import RobustScaler
from varifold import AROW, OLVF, AutoClassifier, Block, PythonRule
from varifold.errors import ModelFileError


class Recorder(PythonRule):
    """Keeps the scaled values that it is given."""

    def start(self):
        self.seen = []

    def learn(self, x, y, w):
        self.seen.append(x)

    def scores(self, x):
        return {}


def instances(n=700, seed=1):
    """Normal, skewed, zero-inflated, counted, constant and alternating values, outliers, a new unit, absences."""
    rng = random.Random(seed)
    for step in range(n):
        watts = rng.gauss(500.0, 80.0)
        x = {
            "normal": rng.gauss(20.0, 2.0),
            "skewed": rng.expovariate(3.0),
            "zeros": rng.expovariate(1.0) if rng.random() < 0.1 else 0.0,
            "count": float(1 + (rng.random() < 0.2) + (rng.random() < 0.05)),
            "word": 1.0,
            "constant": 7.5,
            "nil": 0.0,
            "level": 100.0 * (step // 90 % 2) + rng.gauss(0.0, 1.0),
            "power": watts if step < 300 else watts / 1000.0,
            "temperature": rng.gauss(20.0, 2.0) if step < 350 else rng.gauss(68.0, 3.6),
            "kind": rng.choice("ab"),
        }
        if rng.random() < 0.02:
            x["normal"] = rng.choice([-1e6, 1e6])
        if step < 3:
            x["skewed"] = 1e6
        yield {name: value for name, value in x.items() if rng.random() < 0.8}


def test_values_are_those_of_the_oracle():
    learner = Recorder(scale="robust", fit_intercept=False)
    scalers: dict[str, RobustScaler] = {}
    for step, x in enumerate(instances(), 1):
        w = 1.0 + step % 3
        learner.learn_one(x, step % 2, w)
        for name, value in x.items():
            if isinstance(value, float):
                found = scalers.setdefault(name, RobustScaler()).scale(value, step, w)
                assert learner.seen[-1][name] == pytest.approx(found, rel=1e-9, abs=1e-12), (name, step)
    restarts = {name: s.restarted_at for name, s in scalers.items() if s.restarts}
    assert restarts.keys() - {"level"} == {"power", "temperature"}, "level alternates, which may look like a new unit"
    assert 300 < restarts["power"] < 340
    assert 350 < restarts["temperature"] < 390
    space = learner._engine.space
    found = learner._engine.scaler.restarts(space.size)
    assert {space.name_of(slot): step for slot, (step, _) in found.items()} == restarts


@pytest.mark.parametrize("name", ["arow", "auto", "gaussiannb", "neighbours", "olids", "ovfm", "ovfiv", "cwfe"])
def test_both_apis_leave_the_same_state_and_files_go_on(name):
    rows = list(instances(420))
    labels = [step % 3 == 0 for step in range(len(rows))]
    one, many = (varifold.models[name](scale="robust") for _ in range(2))
    for x, y in zip(rows, labels, strict=True):
        one.learn_one(x, y)
    many.learn_many(rows[:200], labels[:200])
    many = varifold.from_bytes(many.to_bytes())
    many.learn_many(Block.from_dicts(rows[200:], labels[200:]))
    assert many.to_bytes() == one.to_bytes()


def test_predicting_changes_nothing():
    model = AROW(scale="robust")
    for step, x in enumerate(instances(300)):
        model.learn_one(x, step % 2)
    before = model.to_bytes()
    for x in instances(50, seed=2):
        model.predict_one(x)
    assert model.to_bytes() == before


def test_words_coded_1_are_presence():
    rng = random.Random(0)
    wrong = {"robust": 0, "standard": 0}
    models = {scale: OLVF(scale=scale) for scale in wrong}
    for step in range(600):
        y = rng.random() < 0.45
        x = {f"{'good' if (rng.random() < 0.7) == y else 'bad'}{rng.randrange(20)}": 1.0 for _ in range(5)}
        for scale, model in models.items():
            wrong[scale] += step > 100 and model.predict_one(x) != y
            model.learn_one(x, y)
    assert wrong["robust"] < 0.6 * wrong["standard"]


def test_outliers_do_not_flatten_a_feature():
    rng = np.random.default_rng(0)
    learner = Recorder(scale="robust", fit_intercept=False)
    for step in range(500):
        learner.learn_one({"a": 1e6 if step in (0, 1) or rng.random() < 0.01 else float(rng.normal())}, 0)
    late = np.array([x["a"] for x in learner.seen[200:]])
    inner = late[late < 3.0]
    assert 0.75 < inner.std() < 1.2
    assert (late == 3.0).sum() >= 1


def test_evicted_features_start_from_nothing():
    model = AROW(scale="robust", max_features=2)
    for step in range(50):
        model.learn_one({"a": float(step % 7), "b": 1.0}, step % 2)
    model.learn_one({"c": 5.0, "d": 6.0}, 0)
    rows = model._engine.scaler.dump(model._engine.space.size)
    assert sorted(rows[1:3, 3].tolist()) == [1.0, 1.0]


def test_extreme_values_stay_finite():
    for values in ([1e150, -1e150, 1e-300, 0.0, 5e-324], [1e308, 1e-308, -1e308], [0.0, 5e-324, 1e-200]):
        model = AROW(scale="robust")
        for step in range(200):
            model.learn_one({"a": values[step % len(values)], "b": values[step // 40 % len(values)]}, step % 2)
            assert all(map(math.isfinite, model.margins_one({"a": values[0], "b": 1.0}).values()))
        assert varifold.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


@pytest.mark.parametrize(("column", "value"), [(0, -1.0), (9, 0.0), (7, 1.5), (10, -1.0), (14, -1.0)])
def test_statistics_that_cannot_be_are_rejected(column, value):
    model = AROW(scale="robust")
    for step in range(50):
        model.learn_one({"a": float(step % 7)}, step % 2)
    names, labels, arrays = model._engine.dump()
    arrays["scaler"][1, column] = value
    with pytest.raises(ValueError, match="statistics"):
        AROW(scale="robust")._engine.fill(names, labels, arrays)


def test_a_file_keeps_its_kind_of_scaling():
    for scale in ("standard", "robust"):
        model = AutoClassifier("fast", scale=scale)
        model.learn_one({"a": 1.0}, 0)
        assert varifold.from_bytes(model.to_bytes()).scale == scale
    with pytest.raises(ModelFileError):
        OLVF.from_bytes(AutoClassifier("fast").to_bytes())
