"""Checks of regressors: predictions before and after the first target, bad targets, units, explanations."""

from __future__ import annotations

import contextlib
import decimal
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from varifold.checks.material import (
    LEVELS,
    Pair,
    assert_explains_known,
    assert_finite,
    assert_sound,
    learn,
    predictions,
    state,
    stream_of,
)

BAD_TARGETS: tuple[Any, ...] = (
    *(math.inf, -math.inf, np.float32("inf"), decimal.Decimal("Infinity")),
    *("a label", b"1", [1.0], {}, 1j, 10**400),
)


def numeric_stream() -> list[Pair]:
    """Generate targets that are a linear function of four features, each present in 80 %, plus a little noise."""
    rng = np.random.default_rng(3)
    pairs: list[Pair] = []
    for _ in range(600):
        v = rng.normal(size=4)
        y = float(50.0 + v @ np.array([8.0, -4.0, 2.0, 1.0]) + 0.5 * rng.normal())
        pairs.append(({f"g{j}": float(v[j]) for j in range(4) if rng.random() < 0.8}, y))
    return pairs


def check_cold_start(learner: Any) -> None:
    """Before any target was learned the prediction is 0."""
    model = learner.clone()
    for x in ({}, {"a": 1.0}, {"a": None, "b": "level"}):
        prediction = model.predict_one(x)
        assert prediction == 0.0, f"predict_one({x}) before any target gave {prediction!r}, not 0"


def check_plain_predictions(learner: Any) -> None:
    """Predictions are finite Python floats at every step."""
    model = learner.clone()
    for x, y in stream_of(model, 80):
        model.learn_one(x, y)
        prediction = model.predict_one(x)
        assert type(prediction) is float, f"predict_one({x}) gave a {type(prediction).__name__}"
        assert math.isfinite(prediction), f"predict_one({x}) gave {prediction}"


def check_empty_instance(learner: Any) -> None:
    """An instance without features can be learned and predicted at any point of the stream."""
    model = learner.clone()
    model.learn_one({}, 5.0)
    prediction = model.predict_one({})
    assert prediction == 5.0, f"predict_one({{}}) gave {prediction} after learn_one({{}}, 5.0)"
    for t, (x, y) in enumerate(stream_of(model, 60)):
        model.learn_one({} if t % 5 == 0 else x, y)
        assert_sound(model, {}, ())


def check_targets(learner: Any) -> None:
    """A target that is infinite or no number raises and does not change the state, in a block as well."""
    model = learn(learner.clone(), stream_of(learner, 20))
    before = state(model)
    for bad in BAD_TARGETS:
        with contextlib.suppress(ValueError, TypeError):
            model.learn_one({"a": 1.0, "new one": 2.0}, bad)
            raise AssertionError(f"the target {bad!r} must raise a ValueError or TypeError")
        assert state(model) == before, f"the rejected target {bad!r} changed the state"
        if hasattr(model, "predict_learn_many"):
            with contextlib.suppress(ValueError, TypeError):
                model.learn_many([{"a": 1.0}, {"a": 1.0, "new one": 2.0}], [1.0, bad])
                raise AssertionError(f"the target {bad!r} in a block must raise a ValueError or TypeError")
            assert state(model) == before, f"the target {bad!r}, rejected in a block, changed the state"


def check_target_types(learner: Any) -> None:
    """Ints, bools, Decimals and NumPy numbers count as the floats of the same value."""
    kinds: Sequence[Callable[[Any], Any]] = (np.float64, np.int32, int, decimal.Decimal, np.float32, bool)
    plain, turned = learner.clone(), learner.clone()
    for t, (x, y) in enumerate(stream_of(learner, 60)):
        value = kinds[t % 6](round(y))
        plain.learn_one(x, float(value))
        turned.learn_one(x, value)
    pairs = stream_of(learner, 20, seed=2)
    assert predictions(plain, pairs) == predictions(turned, pairs), "the type of a target changed a prediction"


def check_constant_target(learner: Any) -> None:
    """A target that never varies is predicted, whatever the features."""
    for constant in (0.0, -3.0, 1e9, 1e-9):
        model = learner.clone()
        for x, _ in stream_of(learner, 60):
            model.learn_one(x, constant)
            prediction = model.predict_one(x)
            assert math.isclose(prediction, constant, rel_tol=1e-9), (
                f"{prediction} predicted where every target was {constant}"
            )
        assert_finite(model)


def check_units(learner: Any) -> None:
    """Targets in other units, a y + b, give predictions in those units."""
    pairs = stream_of(learner, 150)
    plain = learn(learner.clone(), pairs)
    for a, b in ((1.0, 100.0), (1024.0, 0.0), (0.01, -7.0), (1e6, 1e6)):
        other = learn(learner.clone(), [(x, a * y + b) for x, y in pairs])
        for x, _ in pairs[-40:]:
            wanted, predicted = a * plain.predict_one(x) + b, other.predict_one(x)
            near = math.isclose(predicted, wanted, rel_tol=1e-6, abs_tol=1e-5 * a)
            assert near, f"{predicted} where targets times {a:g} plus {b:g} should give {wanted} on {x}"


def check_extreme_targets(learner: Any) -> None:
    """Targets like 1e308 and 5e-324 leave a finite state and finite predictions."""
    extremes = (1e308, -1e308, 5e-324, 1e-300, 1e155, -1e155, 1e16, 0.0, -0.0, 10**30, 1.0)
    model = learner.clone()
    for t in range(110):
        x = {f"e{j}": math.sin(t * (j + 1)) for j in range(4)} | {"plain": float(t % 2)}
        model.learn_one(x, extremes[(t * 7) % len(extremes)])
        assert_sound(model, x, ())
    assert_finite(model)


def check_explanation(learner: Any) -> None:
    """Contributions of the features sum to the prediction."""
    model = learner.clone()
    assert model.explain_one({"a": 1.0}) == {}, "there is nothing to explain before any target"
    for t, (x, y) in enumerate(stream_of(learner, 90)):
        model.learn_one(x, y + 40.0)
        if t % 3:
            continue
        for instance in (x, {}):
            predicted, total = model.predict_one(instance), math.fsum(model.explain_one(instance).values())
            near = math.isclose(total, predicted, rel_tol=1e-9, abs_tol=1e-9)
            assert near, f"{total} explains a prediction of {predicted}"
        assert_explains_known(model, x, ("(intercept)",))


def check_learns(learner: Any) -> None:
    """Where targets are a linear function of the features the mean absolute error is clearly below that of the mean."""
    model = learner.clone()
    uses_values = getattr(getattr(learner, "traits", None), "uses_values", True)
    pairs = numeric_stream()
    error = by_mean = 0.0
    mean = sum(y for _, y in pairs) / len(pairs)
    for t, (x, y) in enumerate(pairs):
        if t >= 300:
            error += abs(model.predict_one(x) - y)
            by_mean += abs(mean - y)
        model.learn_one(x, y)
    wanted = 0.75 * by_mean if uses_values else 1.1 * by_mean
    assert error < wanted, f"an absolute error of {error / 300:.3g} where the mean has {by_mean / 300:.3g}"


def check_string_columns(learner: Any) -> None:
    """String columns are learned at least about as well as a column of 0 and 1 for each value, made by hand."""
    strings, by_hand = learner.clone(), learner.clone()
    rng = np.random.default_rng(5)
    error = error_by_hand = by_mean = 0.0
    for t in range(400):
        picked = {f"c{j}": LEVELS[int(rng.integers(3))] for j in range(4) if rng.random() < 0.85}
        y = float(sum((LEVELS.index(v) - 1) * (1 + int(column[1])) for column, v in picked.items()) + rng.normal())
        made = {f"{column} is {v}": float(v == picked[column]) for column in picked for v in LEVELS}
        if t >= 100:
            error += abs(strings.predict_one(picked) - y)
            error_by_hand += abs(by_hand.predict_one(made) - y)
            by_mean += abs(strings.predict_one({}) - y)
        strings.learn_one(picked, y)
        by_hand.learn_one(made, y)
    assert error <= error_by_hand + 0.25 * by_mean, (
        f"an absolute error of {error / 300:.3g} with string columns, {error_by_hand / 300:.3g} with those made by hand"
    )
