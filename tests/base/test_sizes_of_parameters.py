"""Parameters of any accepted size give finite predictions and a state that can be saved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import varifold
from varifold.base.learner import is_regressor
from varifold.base.params import LARGEST, SMALLEST, AnyOf, Real
from varifold.checks.material import stream
from varifold.errors import ParameterError

METHODS: dict[str, Any] = {**varifold.models, **varifold.detectors}


def real_parameters(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the names of a method's parameters that are real numbers, with their constraints."""
    made = METHODS[name]()._get_params()
    for parameter, constraint in METHODS[name]._constraints().items():
        options = constraint.options if isinstance(constraint, AnyOf) else [constraint]
        if parameter in made and any(isinstance(option, Real) for option in options):
            yield parameter, constraint


def assert_sound(name: str, learner: Any) -> None:
    for i, (x, y) in enumerate(stream(60, labels=("a", "b", "c"))):
        if name in varifold.detectors:
            learner.learn_one(x)
            found = [learner.score_one(x)]
        else:
            learner.learn_one(x, float(i % 7) if is_regressor(learner) else y)
            found = [learner.predict_one(x)] if is_regressor(learner) else list(learner.predict_proba_one(x).values())
        assert all(math.isfinite(number) for number in found), found
    type(learner).from_bytes(learner.to_bytes())


@pytest.mark.parametrize("name", METHODS)
def test_extreme_sizes(name: str) -> None:
    for parameter, constraint in real_parameters(name):
        for value in (SMALLEST, LARGEST, 5e-324, 1e-60, 1e60, 1.7e308):
            if constraint.accepts(value):
                assert_sound(name, METHODS[name](**{parameter: value}))
                continue
            with pytest.raises(ParameterError, match=f"The '{parameter}' parameter of {METHODS[name].__name__}"):
                METHODS[name](**{parameter: value})


def test_the_error_names_the_sizes() -> None:
    with pytest.raises(ParameterError, match=r"Got 1e-60 instead\. Numbers other than 0 are from 1e-50 to 1e\+50"):
        varifold.AROW(r=1e-60)
