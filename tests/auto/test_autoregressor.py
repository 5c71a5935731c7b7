"""AutoRegressor follows its equations, drifting targets and new levels, and ignores single outliers."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import pytest

from tests.oracles.autoregressor import PlainAutoRegressor
from tests.oracles.harness import Scaler
from varifold import AROWRegressor, AutoRegressor, MeanRegressor, from_bytes, to_block
from varifold.base import files
from varifold.errors import ModelFileError
from varifold.evaluate import prequential

Rows = list[tuple[dict[str, float], float, float]]


def stream(n: int, seed: int = 0) -> Rows:
    """A curved target of features that come and go, one of them late, with a level that wanders; weights of 1."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    level = 50.0
    for step in range(n):
        full = {f"f{j}": float(rng.normal()) for j in range(5 if step > n // 3 else 4)}
        level += float(rng.normal(0.0, 0.1))
        y = level + 4.0 * full["f0"] + 3.0 * abs(full["f1"]) + full["f2"] * full["f3"] + float(rng.normal(0.0, 0.3))
        x = {name: v for name, v in full.items() if rng.random() < 0.8}
        rows.append((x, y, 1.0))
    return rows


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_every_step_follows_the_oracle(loss: str, late: int) -> None:
    """Targets come at once or `late` rows later; they are learned with the memos of their predictions."""
    learner, plain = AutoRegressor(loss), PlainAutoRegressor(loss, Scaler("robust"))
    differs, waiting = 0, collections.deque[Any]()
    for step, (x, y, w) in enumerate(stream(160)):
        expected = plain.predict({name: v for name, v in x.items() if name in plain.scaler.past})
        assert learner.predict_one(x) == pytest.approx(expected, rel=1e-9, abs=1e-9), f"step {step}"
        differs += abs(expected - np.mean([t for t, _ in plain.targets] or [0.0])) > 0.5
        known = {name: v for name, v in x.items() if name in plain.scaler.past}
        waiting.append((x, y, w, learner.memo_one(x), plain.issue(known)))
        if len(waiting) > late:
            x, y, w, memo, issued = waiting.popleft()
            learner.learn_one(x, y, w, memo)
            plain.learn(x, y, w, issued)
    assert differs > 100
    assert len(plain.lates) > 100 if late else not plain.lates
    weights = learner.report().experts
    assert list(weights.values()) == pytest.approx(plain.portions().tolist(), rel=1e-7)


def test_it_is_better_than_its_linear_expert_and_the_mean() -> None:
    rows = [(x, y) for x, y, _ in stream(1500, seed=3)]
    mae = {cls.__name__: prequential(cls(), rows).mae for cls in (AutoRegressor, AROWRegressor, MeanRegressor)}
    assert mae["AutoRegressor"] < 0.9 * mae["AROWRegressor"] < mae["MeanRegressor"]


def test_one_enormous_target_has_little_effect() -> None:
    rows = stream(600, seed=5)
    clean, outlier = AutoRegressor(), AutoRegressor()
    for step, (x, y, _) in enumerate(rows[:500]):
        clean.learn_one(x, y)
        outlier.learn_one(x, 1e9 if step == 400 else y)
    errors: dict[str, float] = {}
    for name, model in (("clean", clean), ("outlier", outlier)):
        errors[name] = float(np.mean([abs(model.predict_one(x) - y) for x, y, _ in rows[500:]]))
    assert errors["outlier"] < 1.1 * errors["clean"]


def test_two_first_targets_that_are_close_do_not_slow_it_down() -> None:
    rng = np.random.default_rng(0)
    rows = [{"a": a, "b": b} for a, b in rng.normal(size=(400, 2)).tolist()]
    y = [10.0 * ((x["a"] > 0.0) != (x["b"] > 0.0)) + e for x, e in zip(rows, rng.normal(0.0, 0.1, 400), strict=True)]
    errors = []
    for second in (0.001, 10.0):
        targets = np.array([0.0, second, *y[2:]])
        predicted = AutoRegressor().run_block(to_block(rows, targets.tolist(), numeric=True))
        errors.append(np.abs(predicted - targets)[100:].mean())
    assert errors[0] < 1.1 * errors[1]


def test_predicting_before_learning_changes_nothing() -> None:
    """Predictions are reused for learning, but only for the same instance, and not once something was learned."""
    rows = stream(400, seed=13)
    predicting, learning = AutoRegressor(), AutoRegressor()
    block = AutoRegressor(unlabelled="learn")
    kept = from_bytes(block.to_bytes())
    for t, (x, y, w) in enumerate(rows):
        if t % 3:
            predicting.predict_one(x if t % 2 else rows[t - 1][0])
        if t % 5 == 0:
            predicting.explain_one(rows[t - 1][0])
        elif t % 5 == 1:
            predicting.explain_one(x)
            predicting.report(predicted=[rows[t - 1][0]])
        predicting.learn_one(x, y, w)
        learning.learn_one(x, y, w)
        block.predict_one(x)
        block.learn_one(x, y if t % 4 else None)
        kept.learn_one(x, y if t % 4 else None)
    assert predicting.to_bytes() == learning.to_bytes()
    assert block.to_bytes() == kept.to_bytes()
    x, y, w = rows[-1]
    before = learning.predict_one(x)
    learning.learn_one(x, y, w)
    assert learning.predict_one(x) != before


def test_explanations_add_up_and_name_the_influential_feature() -> None:
    model = AutoRegressor()
    for x, y, w in stream(500, seed=7):
        model.learn_one(x, y, w)
    x: dict[str, Any] = {"f0": 2.0, "f1": 0.1, "f3": -0.2}
    parts = model.explain_one(x)
    assert sum(parts.values()) == pytest.approx(model.predict_one(x), rel=1e-9)
    assert next(iter(parts)) == "f0"


def test_report_and_files() -> None:
    model = AutoRegressor("absolute")
    rows = stream(300, seed=9)
    model.learn_many(to_block([x for x, _, _ in rows], [y for _, y, _ in rows], numeric=True))
    report = model.report()
    assert sum(report.experts.values()) == pytest.approx(1.0)
    assert report.history_weights.shape == (len(report.history_steps), len(report.experts))
    assert 0.1 < report.typical_error < 5.0
    assert "typical error" in str(report)
    assert "f0" in report.features
    assert "no error measured yet" in str(AutoRegressor().report())
    again = from_bytes(model.to_bytes())
    for x, y, w in stream(80, seed=11):
        assert again.predict_one(x) == model.predict_one(x)
        again.learn_one(x, y, w)
        model.learn_one(x, y, w)
    assert again.to_bytes() == model.to_bytes()


def test_the_report_of_equal_targets_has_an_error_of_0() -> None:
    model = AutoRegressor()
    for step in range(20):
        model.learn_one({"x": float(step)}, 5.0)
        assert math.isnan(model.report().typical_error) == (step == 0)
    assert "typical error so far 0." in str(model.report())


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.5])
def test_a_new_level_is_followed_however_precise_the_predictions_were(noise: float) -> None:
    rng = np.random.default_rng(1)
    model, errors = AutoRegressor(), []
    for step in range(600):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        y = 2.0 * x["a"] - x["b"] + (10.0 if step >= 400 else 0.0) + float(rng.normal(0.0, noise))
        errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, y)
    assert np.mean(errors[430:460]) < 1.5


def test_the_copula_is_disabled_in_a_wide_space_and_files_keep_that() -> None:
    model = AutoRegressor()
    rows = [{f"f{13 * step % 1100 + j}": 1.0 for j in range(20)} for step in range(120)]
    model.learn_many(to_block(rows, [float(len(x) + step % 5) for step, x in enumerate(rows)], numeric=True))
    assert "copula: disabled, there are more than 1,024 features" in model.report().notes
    again = from_bytes(model.to_bytes())
    for step, x in enumerate(rows):
        assert again.predict_one(x) == model.predict_one(x)
        assert math.fsum(again.explain_one(x).values()) == pytest.approx(again.predict_one(x), rel=1e-9)
        again.learn_one(x, float(step % 5))
        model.learn_one(x, float(step % 5))
    assert again.to_bytes() == model.to_bytes()


def test_unknown_experts_are_rejected() -> None:
    model = AutoRegressor()
    model._header = lambda: {"method": "autoregressor", "params": {}, "experts": ["oracle"]}  # type: ignore[method-assign]
    with pytest.raises(ModelFileError, match="this version does not have all of them"):
        from_bytes(model.to_bytes())


def test_it_learns_interactions() -> None:
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(2500):
        x = {f"f{j}": float(rng.normal()) for j in range(6)}
        rows.append((x, 10.0 * float((x["f0"] > 0) != (x["f1"] > 0)) + 0.3 * float(rng.normal())))
    model = AutoRegressor()
    errors = [abs(p - y) for p, (_, y) in zip(model.predict_learn_many(*zip(*rows, strict=True)), rows, strict=True)]
    assert np.mean(errors[-800:]) < 2.0, "5 without them"
    assert max(model.report().experts, key=model.report().experts.get) in ("window forest", "stack")  # type: ignore[arg-type]


def test_a_file_with_negative_steps_is_rejected() -> None:
    model = AutoRegressor()
    for x, y, _ in stream(300):
        model.learn_one(x, y)
    header, arrays = files.decode(model.to_bytes(), "test")
    name = next(name for name in arrays if name.endswith("history.step"))
    with pytest.raises(ModelFileError, match=r"history\.step"):
        from_bytes(files.encode(header, {**arrays, name: -arrays[name]}))
