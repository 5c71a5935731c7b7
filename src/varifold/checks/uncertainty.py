"""Checks of intervals and sets of labels: nested, equal through both APIs and in a copy, bad coverages rejected."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any

from varifold.base import to_block
from varifold.base.learner import is_regressor
from varifold.checks.material import state, stream_of

COVERAGES = (0.5, 0.9)


def check_intervals(learner: Any) -> None:
    """Intervals contain the prediction and smaller intervals, and are finite after two targets; predicting is pure."""
    model = _measuring(learner)
    for t, (x, y) in enumerate(stream_of(learner, 120)):
        before = state(model) if t % 40 == 0 else None
        inner, outer = (model.predict_interval_one(x, coverage) for coverage in COVERAGES)
        assert before in (None, state(model)), "predict_interval_one changed the state"
        prediction = model.predict_one(x)
        ordered = outer.low <= inner.low <= prediction <= inner.high <= outer.high
        assert ordered, f"a prediction of {prediction} with the intervals {inner} and {outer}"
        if t > 1:
            assert math.isfinite(outer.high - outer.low), f"the interval {outer} after {t} targets"
        model.learn_one(x, y)
    _check_rejection(model.predict_interval_one, learner)


def check_sets(learner: Any) -> None:
    """Sets contain known labels and smaller sets; predicting is pure."""
    model = _measuring(learner)
    assert model.predict_set_one({"a": 1.0}) == set(), "there is a set before any label"
    for t, (x, y) in enumerate(stream_of(learner, 120, labels=("a", 1, True))):
        before = state(model) if t % 40 == 0 else None
        inner, outer = (model.predict_set_one(x, coverage) for coverage in COVERAGES)
        assert before in (None, state(model)), "predict_set_one changed the state"
        known = set(model.predict_proba_one(x))
        assert inner <= outer <= known, f"the sets {inner} and {outer} of the labels {known}"
        model.learn_one(x, y)
    _check_rejection(model.predict_set_one, learner)


def check_uncertain_apis(learner: Any) -> None:
    """Intervals and sets are equal through both APIs, and continue in a copy."""
    pairs = stream_of(learner, 120)
    call = "predict_interval" if is_regressor(learner) else "predict_set"
    one, many = _measuring(learner), _measuring(learner)
    for x, y in pairs[:80]:
        one.learn_one(x, y)
    numeric = is_regressor(learner)
    many.learn_many(to_block([x for x, _ in pairs[:30]], [y for _, y in pairs[:30]], numeric=numeric))
    many.predict_learn_many(to_block([x for x, _ in pairs[30:80]], [y for _, y in pairs[30:80]], numeric=numeric))
    rows = [x for x, _ in pairs[80:]] + [{}, {"unknown": 1.0}]
    for coverage in COVERAGES:
        wanted = [getattr(one, f"{call}_one")(x, coverage) for x in rows]
        for model, what in ((many, "a learner of blocks"), (copy.deepcopy(one), "a copy")):
            singly = [getattr(model, f"{call}_one")(x, coverage) for x in rows]
            assert singly == wanted, f"{call}_one of {what} differs"
            assert getattr(model, f"{call}_many")(rows, coverage) == wanted, f"{call}_many of {what} differs"


def _measuring(learner: Any) -> Any:
    return learner.clone({"coverages": COVERAGES})


def _check_rejection(predict: Any, learner: Any) -> None:
    for bad in (0.8, 0.0, 1.0, math.nan):
        with contextlib.suppress(ValueError):
            predict({"a": 1.0}, bad)
            raise AssertionError(f"the coverage {bad} is not among {COVERAGES} and must raise a ValueError")
    for bad in (0.0, 1.0, math.nan):
        with contextlib.suppress(ValueError):
            learner.clone({"coverages": (bad,)})
            raise AssertionError(f"coverages=({bad},) must raise a ValueError")
