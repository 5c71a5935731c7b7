"""Explanations sum to what they explain, whatever features are called and however large targets are."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import varifold
from varifold import AROW, AROWRegressor, PythonRule
from varifold.base import files
from varifold.checks.material import is_regressor

RESERVED: list[Any] = ["(intercept)", "(decision)", "(minus expected cost)", "feature (intercept)", "a (absent)"]
NAMES = [*RESERVED, "a (present)", 1, "1", "a", "b"]


class Counting(PythonRule):
    """A rule whose explanation is incomplete: it adds up values and explains one of them."""

    def start(self) -> None:
        self.total = 0.0

    def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
        self.total += w

    def scores(self, x: dict[Any, float]) -> dict[Any, float]:
        return {"p": math.fsum(x.values()), "q": self.total}

    def explain(self, x: dict[Any, float], label: Any) -> dict[Any, float]:
        return {"(intercept)": x["(intercept)"], "a": x.get("a", 0.0)}


def assert_sums(learner: Any, x: dict[Any, Any], step: int) -> None:
    predicted = learner.predict_one(x)
    if is_regressor(learner):
        expected = predicted
    else:
        expected = learner.margins_one(x)[predicted] if predicted is not None else 0.0
    for by_column in (False, True):
        parts = learner.explain_one(x, by_column=by_column)
        largest = max((abs(part) for part in parts.values()), default=0.0)
        total = math.fsum(parts.values())
        near = math.isclose(total, expected, rel_tol=1e-9, abs_tol=max(1e-9 * largest, 1e-12))
        assert near, f"step {step}: {parts} sums to {total}, not {expected}"


def learners(name: str) -> list[Any]:
    """Return the method's forms; of classifiers also two that decide by costs."""
    cls: Any = varifold.models[name]
    forms = [cls(**params) for params in cls._unit_test_params()]
    if not is_regressor(forms[0]):
        forms += [cls(objective="balanced"), cls(costs={"p": {"q": 2.0, "r": 1.0}, "q": {"p": 3.0}, "r": {"p": 1.0}})]
    return forms


@pytest.mark.parametrize("name", [*sorted(varifold.models), "rule"])
def test_contributions_sum_to_the_score(name: str) -> None:
    for form, learner in enumerate([Counting()] if name == "rule" else learners(name)):
        rng = random.Random(form)
        for step in range(120):
            x: dict[Any, Any] = {f: rng.gauss(0, 1) for f in NAMES if rng.random() < 0.6}
            if rng.random() < 0.3:
                x[rng.choice(["kind", "(kind)"])] = rng.choice("xyz")
            if step % 5 == 0 or step > 100:
                assert_sums(learner, x, step)
            y = rng.gauss(0, 1) + x.get("b", 0.0) if is_regressor(learner) else rng.choice("pqr")
            learner.learn_one(x, y)


@pytest.mark.parametrize("largest", [1e16, -1e20, 1e150])
@pytest.mark.parametrize("name", [name for name in sorted(varifold.models) if is_regressor(varifold.models[name]())])
def test_contributions_sum_after_an_extreme_target(name: str, largest: float) -> None:
    rng = random.Random(1)
    learner = varifold.models[name]()
    for step in range(330):
        x = {f: rng.gauss(0, 1) for f in "abcd" if rng.random() < 0.7}
        if step % 10 == 0 or step > 320:
            assert_sums(learner, x, step)
        learner.learn_one(x, largest if step == 20 else rng.gauss(0, 1) + x.get("b", 0.0))


def test_a_feature_with_a_reserved_name_is_listed_under_its_own() -> None:
    classifier, regressor = AROW(objective="balanced"), AROWRegressor()
    plain = AROW(objective="balanced")
    for step in range(40):
        x = {"(intercept)": step % 5, "(decision)": step % 3, "feature (intercept)": step % 2}
        classifier.learn_one(x, step % 5 > 2)
        regressor.learn_one(x, 3.0 * (step % 5))
        plain.learn_one({"A": x["(intercept)"], "B": x["(decision)"], "C": x["feature (intercept)"]}, step % 5 > 2)
    shown = ["feature (intercept)", "feature (decision)", "feature feature (intercept)"]
    parts = classifier.explain_one({"(intercept)": 3, "(decision)": 1, "feature (intercept)": 1})
    expected = plain.explain_one({"A": 3, "B": 1, "C": 1})
    assert set(parts) == {*shown, "(intercept)", "(decision)"}
    assert list(parts)[-2:] == ["(intercept)", "(decision)"]
    names = {"(intercept)": "(intercept)", "(decision)": "(decision)", "B": "feature (decision)"}
    assert {name: parts[names[name]] for name in names} == pytest.approx({name: expected[name] for name in names})
    assert sorted(parts[name] for name in shown) == pytest.approx(sorted(expected[name] for name in "ABC"))
    assert list(regressor.explain_one({"(intercept)": 3}))[-1] == "(intercept)"
    assert "feature (intercept)" in regressor.explain_one({"(intercept)": 3})


@pytest.mark.parametrize("weight", [1e308, 1.7e308])
def test_infinite_contributions_of_a_crafted_file_are_returned(weight: float) -> None:
    learner = AROWRegressor()
    for step in range(20):
        learner.learn_one({"a": step % 3, "b": step % 5}, float(step))
    header, arrays = files.decode(learner.to_bytes(), "")
    arrays["model.state"][..., 0] = weight
    crafted = varifold.from_bytes(files.encode(header, arrays))
    for x in ({"a": 30.0, "b": 40.0}, {"a": 30.0, "b": -40.0}, {"a": 1e150}):
        crafted.predict_one(x)
        assert set(x) <= set(crafted.explain_one(x))
