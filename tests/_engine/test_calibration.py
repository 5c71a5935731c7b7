"""Calibrated probabilities: step by step against plain Python, both APIs, files, and what they are for."""

from __future__ import annotations

import math

import pytest

import varifold
from tests.oracles.calibration import Calibration
from tests.oracles.harness import stream
from varifold import AROW, FESL, AutoClassifier, GaussianNB


@pytest.mark.parametrize(("name", "labels"), [("arow", 2), ("arow", 5), ("gaussiannb", 3), ("olvf", 2), ("fae", 3)])
def test_every_step_follows_the_oracle(name, labels):
    model, raw, plain = varifold.models[name](), varifold.models[name](calibrate=False), Calibration()
    used = 0
    rows = list(stream(3000, labels=labels, weights=True))
    for step, (x, y, w) in enumerate(rows):
        if step % 3 == 2:
            y = rows[step - 1][1]  # many wrong labels: the model is too confident
        before = raw.predict_proba_one(x)
        is_seen = any(f in raw.features for f in x)
        expected = plain.probabilities(before, raw.predict_one(x)) if is_seen else before
        used += expected != before
        assert model.predict_proba_one(x) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert model.predict_one(x) == raw.predict_one(x)
        if w > 0.0 and is_seen:
            plain.learn(before, y, w, raw.steps)
        for learner in (model, raw):
            learner.learn_one(x, y, w)
    assert used > 10
    assert 2000 < plain.count < 2200


@pytest.mark.parametrize("name", ["arow", "additive", "gaussiannb", "ovfiv", "orf3v", "neighbours"])
def test_both_apis_leave_the_same_state_and_files_continue(name):
    rows = [(x, y) for x, y, _ in stream(2300, labels=3)]
    one, many, fused = (varifold.models[name]() for _ in range(3))
    for x, y in rows:
        one.learn_one(x, y)
        fused.predict_learn_many([x], [y])
    many.learn_many([x for x, _ in rows[:90]], [y for _, y in rows[:90]])
    many = varifold.from_bytes(many.to_bytes())
    many.learn_many([x for x, _ in rows[90:]], [y for _, y in rows[90:]])
    assert many.to_bytes() == one.to_bytes()
    assert fused.to_bytes() == one.to_bytes()


def test_too_confident_probabilities_are_corrected():
    losses = {}
    for calibrate in (False, True):
        model, total = GaussianNB(calibrate=calibrate), 0.0
        for x, y, _ in stream(800):
            copies = {f"{name} {i}": v for name, v in x.items() for i in range(4)}
            total -= math.log(max(model.predict_proba_one(copies).get(y, 0.5), 1e-6))
            model.learn_one(copies, y)
        losses[calibrate] = total / 800
    assert losses[True] < 0.75 * losses[False]


@pytest.mark.parametrize("labels", [2, 3])
def test_separable_labels_are_never_certain(labels):
    model = GaussianNB()
    for step in range(400):
        model.learn_one({"a": 5.0 * (step % labels) + 0.1 * (step % 5)}, step % labels)
    assert all(0.0 < p < 1.0 for p in model.predict_proba_one({"a": 5.0}).values())


def test_without_calibration_nothing_is_kept_or_changed():
    """The default differs from `calibrate=False` by its probabilities and by one array of the file."""
    default, plain = AROW(), AROW(calibrate=False)
    for x, y, w in stream(300, weights=True):
        default.learn_one(x, y, w)
        plain.learn_one(x, y, w)
    arrays, others = default._engine.dump()[2], plain._engine.dump()[2]
    assert set(arrays) - set(others) == {"calibration"}
    assert all((arrays[name] == array).all() for name, array in others.items())


def test_learners_of_papers_and_the_default_learner_do_not_calibrate():
    assert not AROW.as_in_paper().calibrate
    assert not FESL.as_in_paper().calibrate
    with pytest.raises(TypeError, match="calibrate"):
        AutoClassifier(calibrate=True)
    assert "calibration" not in AutoClassifier()._engine.dump()[2]


def test_explanations_sum_to_the_margin():
    model = AROW(costs={"label 1": 3.0})
    for x, y, _ in stream(200):
        model.learn_one(x, y)
    for x, _, _ in stream(30, seed=3):
        if x:
            parts = model.explain_one(x)
            assert sum(parts.values()) == pytest.approx(max(model.margins_one(x).values()), abs=1e-9)


def test_a_calibration_that_cannot_be_is_rejected():
    model = AROW()
    for x, y, _ in stream(50):
        model.learn_one(x, y)
    names, labels, arrays = model._engine.dump()
    arrays["calibration"][1] = -1.0
    with pytest.raises(ValueError, match="calibration"):
        AROW()._engine.fill(names, labels, arrays)


def test_merged_learners_calibrate_again():
    halves = []
    for seed in (0, 1):
        model = AROW()
        for x, y, _ in stream(100, seed=seed):
            model.learn_one(x, y)
        halves.append(model)
    merged = varifold.merge(halves)
    alone = varifold.merge(halves[:1])
    calibration = [model._engine.dump()[2]["calibration"] for model in (merged, alone, halves[0])]
    assert calibration[0].tolist() == [1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2]
    assert (calibration[1] == calibration[2]).all()
    assert varifold.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()
