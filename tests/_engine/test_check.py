"""What learning would reject is rejected by a check, in the same words, and nothing changes; what it takes passes."""

import enum
import math
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.checks.material import state
from varifold.errors import VarifoldError

BAD = [
    {"a": math.inf},
    {"a": [1]},
    {1.5: 2.0},
    {"v": "o", "v=o": 1.0},
    {"level=low": 1.0},
    {"name": "x"},
    5,
]
GOOD = [{"a": 1.0}, {"new": 2, "v": "o"}, {"level": "low"}, {"a": None, "b": float("nan")}, {}]


def learned(cls, **params):
    model = cls(**params)
    for step in range(6):
        model.learn_one({"a": float(step), "level": "low", "name=x": 1.0}, step % 2)
    return model


MODELS = [varifold.AROW, varifold.AutoClassifier, varifold.AROWRegressor]


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("x", BAD, ids=repr)
def test_a_check_rejects_what_learning_rejects(cls, x):
    model = learned(cls)
    before = state(model)
    with pytest.raises(VarifoldError) as checked:
        model._check_one(x, 1)
    with pytest.raises(VarifoldError) as rejected:
        model.learn_one(x, 1)
    assert (type(checked.value), str(checked.value)) == (type(rejected.value), str(rejected.value))
    assert state(model) == before


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("x", GOOD, ids=repr)
def test_a_check_lets_pass_what_learning_takes_and_changes_nothing(cls, x):
    model, other = learned(cls), learned(cls)
    before = state(model)
    model._check_one(x, 1)
    model._check_one(x)
    assert state(model) == before
    for each in (model, other):
        each.learn_one(x, 1)
    assert state(model) == state(other)


@pytest.mark.parametrize("y", ["dear", -math.inf, math.inf, [1]])
def test_targets_of_a_regressor_are_checked(y):
    model = learned(varifold.AROWRegressor)
    with pytest.raises(VarifoldError) as checked:
        model._engine.check({}, y)
    with pytest.raises(VarifoldError) as rejected:
        model.learn_one({"a": 1.0}, y)
    assert str(checked.value) == str(rejected.value)


def test_learners_of_learners_check_as_their_parts_do():
    keyed = varifold.PerKey(varifold.AROW(), key="device")
    keyed.learn_one({"device": "a", "level": "low"}, "up")
    vote = varifold.Vote([learned(varifold.AROW), learned(varifold.AROW)])
    for model, x, message in (
        (keyed, {"level": "low"}, "the key 'device' is None"),
        (keyed, {"device": "a", "level=low": 1.0}, "'level=low' at step 2"),
        (vote, {"level=low": 1.0}, "'level=low'"),
        (vote, {"a": math.inf}, "'a' is inf"),
    ):
        with pytest.raises(VarifoldError, match=message):
            model._check_one(x, "up")
    keyed._check_one({"device": "b", "level=low": 1.0}, "up")
    assert keyed.keys == ["a"]


@pytest.mark.parametrize("unit", ["ns", "us", "s", "D", "Y"])
def test_a_time_span_of_numpy_is_rejected_as_one_of_python_is(unit: str) -> None:
    for learn in (
        lambda x: varifold.AROW().learn_one(x, 1),
        lambda x: varifold.AROW().learn_many([x], [1]),
    ):
        with pytest.raises(varifold.errors.FeatureValueError, match=r"feature 'v' is .*timedelta64"):
            learn({"v": np.timedelta64(3, unit)})
    model = varifold.AROW()
    model.learn_one({"v": np.timedelta64("NaT", unit), "a": 1.0}, 1)
    assert list(model.features) == ["a"]


class Place(str, enum.Enum):  # noqa: UP042 - StrEnum shows itself as its text
    """A text that shows itself as another."""

    OVEN = "oven"


def test_a_text_of_an_enum_is_its_text() -> None:
    x: dict[str, Any] = {Place.OVEN: 1.0, "at": Place.OVEN}
    by_dict, by_block = varifold.AROW(), varifold.AROW()
    by_dict.learn_one(x, 1)
    by_block.learn_many([x], [1])
    assert sorted(by_dict.features) == ["at=oven", "oven"]
    assert by_dict.to_bytes() == by_block.to_bytes()
