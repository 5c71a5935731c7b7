"""CopulaRegressor follows its equations step by step and predicts its uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracles.copularegressor import PlainCopulaRegressor
from varifold import AROWRegressor, AutoRegressor, CopulaRegressor, from_bytes
from varifold.errors import ParameterError
from varifold.evaluate import prequential

Rows = list[tuple[dict[str, Any], float, float]]


def machine(n: int, seed: int = 0, grades: bool = False) -> Rows:
    """Heat decides the rest: numbers, a Boolean, a grade and a word, each often absent; the target goes with it."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for t in range(n):
        heat = float(rng.normal())
        full: dict[str, Any] = {
            "alarm": float(heat > 0.8),
            "grade": float(np.clip(np.round(heat + 0.2 * rng.normal()), -2, 2)),
            "power": float(np.exp(heat + 0.2 * rng.normal())),
            "state": "cold" if heat < -0.5 else "hot" if heat > 0.5 else "mild",
            "heat": heat + 0.1 * float(rng.normal()),
        }
        x = {name: v for name, v in full.items() if rng.random() > 0.4 and (name != "heat" or t > n // 3)}
        y = 50.0 + 10.0 * heat + float(rng.normal())
        rows.append((x if t % 29 else {}, float(round(y / 10)) if grades else y, float(rng.choice([1.0, 0.5, 2.0]))))
    return rows


def ordered(model: CopulaRegressor, x: dict[str, Any]) -> dict[str, float]:
    """The known features of an instance in the order of their slots, strings as indicators."""
    named = {f"{n}={v}" if isinstance(v, str) else n: 1.0 if isinstance(v, str) else v for n, v in x.items()}
    slot = model._engine.space.id_of
    return {n: v for n, v in sorted(named.items(), key=lambda item: slot(item[0])) if slot(n) > 0}


@pytest.mark.parametrize("grades", [False, True])
@pytest.mark.parametrize("settings", [{}, {"window": 50, "batch": 7, "max_dense": 4}])
def test_every_step_is_that_of_the_equations(settings: dict[str, Any], grades: bool) -> None:
    model = CopulaRegressor(**settings)
    renamed = {"W": settings.get("window", 200), "b": settings.get("batch", 20)}
    plain = PlainCopulaRegressor(**renamed, max_dense=settings.get("max_dense", 512) + 1)
    for step, (x, y, w) in enumerate(machine(260, grades=grades)):
        if step > 2:
            found = model.predict_distribution_one(x)
            expected = plain.distribution(ordered(model, x))
            assert found[:2] == pytest.approx(expected, rel=1e-9, abs=1e-9), f"step {step}"
            assert model.predict_one(x) == found.mean
        model.learn_one(x, y, w)
        plain.learn(ordered(model, x), y, w)


@pytest.mark.parametrize("every", [2, 5, 12])
@pytest.mark.parametrize("settings", [{}, {"window": 30, "batch": 7, "max_dense": 4}])
def test_every_step_without_a_target_is_that_of_the_equations(settings: dict[str, Any], every: int) -> None:
    model = CopulaRegressor(**settings, unlabelled="learn")
    renamed = {"W": settings.get("window", 200), "b": settings.get("batch", 20)}
    plain = PlainCopulaRegressor(**renamed, max_dense=settings.get("max_dense", 512) + 1)
    for step, (x, y, w) in enumerate(machine(300, seed=every)):
        if step > 15:
            expected = plain.distribution(ordered(model, x))
            assert model.predict_distribution_one(x)[:2] == pytest.approx(expected, rel=1e-9, abs=1e-9), f"step {step}"
        known = step % every == 1 or 150 < step < 160
        model.learn_one(x, y if known else None, w)
        plain.learn(ordered(model, x), y if known else None, w, step)
    assert plain.copula.without > 100
    if "max_dense" not in settings:
        assert model.features["power"].weight > 0.5


def test_rare_targets_keep_their_node_while_features_compete() -> None:
    """The target is always under the copula, however few instances have one."""
    rng = np.random.default_rng(4)
    model = CopulaRegressor(max_dense=3, unlabelled="learn")
    for t in range(2000):
        level = float(rng.normal())
        x = {f"f{j}": level + 0.1 * float(rng.normal()) for j in range(6)}
        model.learn_one(x, level if t % 25 == 0 else None)
    assert [f.role for f in model.features.values()] == 3 * ["latent"] + 3 * ["outside"]
    assert model.features["f0"].weight > 0.8


def test_instances_without_a_target_help_where_features_are_correlated() -> None:
    rng = np.random.default_rng(5)
    errors = {True: 0.0, False: 0.0}
    for _ in range(4):
        slopes = rng.normal(size=(12, 2))
        rows = []
        for _ in range(600):
            f = rng.normal(size=2)
            values = slopes @ f + 0.5 * rng.normal(size=12)
            rows.append(({f"f{j}": float(v) for j, v in enumerate(values) if rng.random() < 0.5}, float(f.sum())))
        for learn in errors:
            model = CopulaRegressor(unlabelled="learn" if learn else "ignore")
            for t, (x, y) in enumerate(rows):
                errors[learn] += abs(model.predict_one(x) - y) if t > 100 else 0.0
                model.learn_one(x, y if t % 20 == 0 else None)
    assert errors[True] < 0.95 * errors[False]


def test_a_file_with_more_rows_without_a_target_than_rows_is_rejected() -> None:
    model = CopulaRegressor(batch=7, unlabelled="learn")
    for t, (x, y, w) in enumerate(machine(100)):
        model.learn_one(x, y if t % 3 == 0 else None, w)
    names, labels, arrays = model._engine.dump()
    arrays["model.unlabelled"] = np.array([101.0])
    with pytest.raises(ValueError, match=r"101 of \d+ rows have no target"):
        CopulaRegressor(batch=7, unlabelled="learn")._engine.fill(names, labels, arrays)


def test_the_default_regressor_lets_its_copula_learn_without_a_target() -> None:
    """Its copula has the correlation of a regressor that learns the same instances alone."""
    alone, ignores = CopulaRegressor(window=500, max_dense=64, unlabelled="learn"), AutoRegressor()
    auto = AutoRegressor(unlabelled="learn")
    for t, (x, y, _) in enumerate(machine(300, seed=9)):
        for model in (alone, auto, ignores):
            model.learn_one(x, y if t % 5 == 0 else None)
    expected, found, without = (
        {k.split(".")[-1]: v for k, v in m._engine.dump()[2].items()} for m in (alone, auto, ignores)
    )
    assert found["unlabelled"] == expected["unlabelled"] > 200
    assert np.array_equal(found["sigma"], expected["sigma"])
    assert without["unlabelled"] == 0.0


def test_explanations_are_the_terms_of_the_conditional_mean() -> None:
    model, plain = CopulaRegressor(), PlainCopulaRegressor()
    rows = machine(300, seed=3)
    for x, y, w in rows:
        model.learn_one(x, y, w)
        plain.learn(ordered(model, x), y, w)
    for x, _, _ in rows[-30:]:
        if not x:
            continue
        expected = plain.parts(ordered(model, x))
        found = model.explain_one(x, by_column=True)
        assert sum(found.values()) == pytest.approx(model.predict_one(x), rel=1e-9)
        assert found.pop("(intercept)") == pytest.approx(expected.pop(""), rel=1e-7)
        assert found == pytest.approx({column: expected.get(column, 0.0) for column in found}, abs=1e-7)


def test_the_deviation_says_how_much_is_known() -> None:
    model = CopulaRegressor()
    rows = machine(1500, seed=5)
    model.learn_many([x for x, _, _ in rows], [y for _, y, _ in rows])
    sure, unsure = model.predict_distribution_many([{"heat": 0.5}, {"alarm": 0.0}])
    assert sure.deviation < 0.5 * unsure.deviation
    assert sure.mean == pytest.approx(55.0, abs=4.0)
    inside = wide = 0
    for x, y, _ in machine(400, seed=6):
        found = model.predict_distribution_one(x)
        inside += found.quantile(0.05) <= y <= found.quantile(0.95)
        wide += 1
    assert 0.84 < inside / wide < 0.96
    assert sure.quantile(0.0) < sure.quantile(0.5) < sure.quantile(1.0)
    with pytest.raises(ParameterError, match="probability between 0 and 1"):
        sure.quantile(1.5)


def test_nothing_is_known_before_any_target() -> None:
    model = CopulaRegressor()
    assert model.predict_distribution_one({"a": 1.0})[:2] == (0.0, 0.0)
    model.learn_one({}, 7.0)
    assert model.predict_distribution_one({"a": 1.0})[:2] == (7.0, 0.0)
    assert model.predict_distribution_one({}).quantile(0.5) == 7.0


def test_it_is_ahead_of_a_linear_regressor_where_absent_features_follow_from_others() -> None:
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(1500):
        level = float(rng.normal())
        full = {f"f{j}": level + 0.3 * float(rng.normal()) for j in range(6)}
        rows.append(({n: v for n, v in full.items() if rng.random() < 0.4}, 10.0 * level))
    found = {cls.__name__: prequential(cls(), rows).mae for cls in (CopulaRegressor, AROWRegressor)}
    assert found["CopulaRegressor"] < 0.8 * found["AROWRegressor"]


@pytest.mark.parametrize("every", [1, 4])
def test_a_restored_learner_goes_on_to_the_bit(every: int) -> None:
    model = CopulaRegressor(batch=7, max_features=6, unlabelled="learn")
    twin = model.clone()
    for t, (x, y, w) in enumerate(machine(200, seed=8)):
        known = t % every == 0
        assert model.predict_one(x) == twin.predict_one(x)
        model.learn_one(x, y if known else None, w)
        twin.learn_many([x], [y if known else None], w=[w])
        if t % 5 == 0:
            twin = from_bytes(twin.to_bytes())
    assert model.to_bytes() == twin.to_bytes()
    assert {f.role for f in model.features.values()} <= {"latent", "reference", "outside"}
