"""AutoRegressor and outliers: among the first targets, in a row, and levels that change for good."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.oracles.autoregressor import PlainAutoRegressor
from tests.oracles.harness import Scaler
from varifold import AutoRegressor, from_bytes, to_block
from varifold._numeric.memory import fail_at
from varifold.errors import OutOfMemoryError

Rows = list[tuple[dict[str, float], float]]
Corrupt = Callable[[int, float], float]


def stream(n: int, corrupt: Corrupt = lambda _, y: y, level: float = 0.0, seed: int = 0) -> Rows:
    """y = 3 s0 - 2 s1 + s2 and noise of .5, around a level; some targets are corrupted."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for step in range(n):
        a = rng.normal(size=4)
        y = level + float(3.0 * a[0] - 2.0 * a[1] + a[2] + 0.5 * rng.normal())
        rows.append(({f"s{j}": float(a[j]) for j in range(4)}, corrupt(step, y)))
    return rows


def errors(rows: Rows, loss: str = "squared") -> np.ndarray:
    """Absolute errors of predictions before learning."""
    xs, ys = zip(*rows, strict=True)
    return np.abs(np.array(AutoRegressor(loss).predict_learn_many(xs, ys)) - np.array(ys))


def at(steps: int | range, value: float) -> Corrupt:
    where = range(steps, steps + 1) if isinstance(steps, int) else steps
    return lambda step, y: value if step in where else y


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("value", [1e9, -1e4])
@pytest.mark.parametrize("step", [0, 1, 7, 8, 29, 30, 31, 32])
def test_one_outlier_at_the_beginning_is_undone(step: int, value: float, loss: str) -> None:
    clean = errors(stream(400), loss)[-300:].mean()
    assert errors(stream(400, at(step, value)), loss)[-300:].mean() < 1.5 * clean


@pytest.mark.parametrize("value", [9999.0, -999.0, 1e9, 0.0])
@pytest.mark.parametrize("rows", [6, 20, 60])
def test_a_run_of_fault_codes_leaves_what_was_learned(rows: int, value: float) -> None:
    clean = errors(stream(900, level=50.0))
    corrupted = errors(stream(900, at(range(500, 500 + rows), value), level=50.0))
    assert corrupted[500 + rows + 1 :].mean() < 1.5 * clean[500 + rows + 1 :].mean()


def test_a_run_of_extreme_values_has_no_lasting_effect() -> None:
    wild = np.random.default_rng(5).lognormal(15.0, 3.0, 15)
    corrupted = errors(stream(1200, lambda step, y: float(wild[step - 500]) if 500 <= step < 515 else y))
    assert corrupted[900:].mean() < 1.5 * errors(stream(1200))[900:].mean()


@pytest.mark.parametrize("jump", [30.0, 100.0, -1e6])
def test_a_level_that_changes_for_good_is_followed(jump: float) -> None:
    clean = errors(stream(700))
    jumped = errors(stream(700, lambda step, y: y + jump if step >= 500 else y))
    assert jumped[512:].mean() < 1.2 * clean[506:].mean()


def test_zeros_among_the_first_targets_do_not_make_the_others_outliers() -> None:
    rows = stream(32, lambda step, y: 0.0 if step % 10 < 7 else 1e-3 if step % 10 == 7 else y)
    model = AutoRegressor()
    for x, y in rows:
        model.learn_one(x, y)
    model.learn_one({"s0": 1.0}, 0.0)
    targets = [y for _, y in rows]
    assert model._engine.model.dump(model._engine.space.size)["target"][1] == pytest.approx(sum(targets) / 33)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(
    "corrupt",
    [
        at(3, 1e4),
        at(12, -1e4),
        at(31, 500.0),
        at(range(60, 70), 900.0),
        lambda step, y: y + 40.0 if step >= 60 else y,
        lambda step, y: float(3 ** (step - 50)) if 60 <= step < 72 else y,
    ],
    ids=["row 3", "row 12", "row 31", "fault codes", "new level", "growing"],
)
def test_every_step_follows_the_oracle(corrupt: Corrupt, loss: str) -> None:
    learner, plain = AutoRegressor(loss), PlainAutoRegressor(loss, Scaler("robust"))
    for step, (x, y) in enumerate(stream(90, corrupt)):
        expected = plain.predict(x) if step else 0.0
        assert learner.predict_one(x) == pytest.approx(expected, rel=1e-7, abs=1e-7), f"step {step}"
        learner.learn_one(x, y)
        plain.learn(x, y, 1.0)


@pytest.mark.parametrize("corrupt", [at(0, 1e9), at(20, 1e6), at(range(60, 70), 9999.0)], ids=["0", "20", "run"])
def test_both_apis_and_files_are_equal_to_the_bit(corrupt: Corrupt) -> None:
    rows = stream(90, corrupt)
    block, single, saved = AutoRegressor(), AutoRegressor(), AutoRegressor()
    xs, ys = zip(*rows, strict=True)
    predicted = block.predict_learn_many(to_block(xs, ys, numeric=True), None)
    for (x, y), expected in zip(rows, predicted, strict=True):
        assert single.predict_one(x) == expected == saved.predict_one(x)
        single.learn_one(x, y)
        saved.learn_one(x, y)
        saved = from_bytes(saved.to_bytes())
    assert block.to_bytes() == single.to_bytes() == saved.to_bytes()


def test_features_evicted_in_the_warm_up_are_not_learned_again() -> None:
    model = AutoRegressor(max_features=3)
    for step in range(40):
        x = {f"f{step // 4 + j}": float(math.sin(step * (j + 1))) for j in range(3)}
        model.learn_one(x, 1e9 if step == 1 else float(step % 5))
        model = from_bytes(model.to_bytes())
    assert abs(model.predict_one({"f9": 0.1})) < 10.0


def test_wide_instances_end_the_warm_up() -> None:
    model = AutoRegressor()
    wide = {f"f{j}": 1.0 for j in range(5000)}
    for step in range(3):
        model.learn_one(wide, float(step))
    assert not any("warm_up." in name for name in model._engine.dump()[2])


def test_the_report_lists_a_rise_of_the_error() -> None:
    model = AutoRegressor()
    assert "no error measured yet" in str(model.report())
    rng = np.random.default_rng(0)
    for step in range(1100):
        a = rng.normal(size=3)
        x = {f"s{j}": float(a[j]) for j in range(3)}
        model.learn_one(x, float(a[0] * (3.0 if step < 1000 else -30.0) + 0.3 * rng.normal()))
        if step == 999:
            assert [change.what for change in model.report().changes] == []
    assert [change.what for change in model.report().changes] == ["error rose"]
    assert "The error rose" in str(model.report())
    assert [change.what for change in from_bytes(model.to_bytes()).report().changes] == ["error rose"]


def test_one_outlier_is_no_rise_of_the_error() -> None:
    model = AutoRegressor()
    for x, y in stream(600, at(595, 1e9)):
        model.learn_one(x, y)
    assert model.report().changes == ()


def test_without_memory_to_learn_again_nothing_changes() -> None:
    learner, twin = AutoRegressor(), AutoRegressor()
    failures = {}
    for step, (x, y) in enumerate(stream(10, at(2, 1e6))):
        x[f"late{step}"] = 1.0
        before = learner.to_bytes()
        k = 1
        while step >= 7 and failing(learner, x, y, k):
            assert learner.to_bytes() == before
            k += 1
        failures[step] = k
        if step < 7:
            learner.learn_one(x, y)
        twin.learn_one(x, y)
        assert learner.to_bytes() == twin.to_bytes(), step
    assert failures[8] > failures[7] + 100, "the experts begin again at the ninth instance"


def failing(learner: AutoRegressor, x: dict[str, float], y: float, k: int) -> bool:
    """Return whether learning failed for lack of memory if the k-th allocation fails."""
    fail_at(k)
    try:
        learner.learn_one(x, y)
    except OutOfMemoryError:
        return True
    finally:
        fail_at(0)
    return False
