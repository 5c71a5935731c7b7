"""Arguments of the wrong type raise errors of the library that name the argument, and leave the learner as it was."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import varifold
from varifold.base.registry import transformers
from varifold.checks.material import state
from varifold.errors import DataError, ModelFileError, ParameterError, UnknownNameError, VarifoldError

ONE: dict[str, Any] = {
    "dicts": [{"a": 1.0}],
    "array": np.array([[1.0]]),
    "frame": pd.DataFrame({"a": [1.0]}),
}
NO_WEIGHTS: list[Any] = ["1", 5, 3.0, {"a": 1.0}, {1.0}, pd.DataFrame({"a": [1.0]}), sparse.coo_matrix([[1.0]])]
NO_NUMBERS: list[Any] = [
    ["1"],
    ["a"],
    [None],
    [1j],
    [[1.0]],
    [pd.NA],
    [object()],
    [10**400],
    np.array([1j]),
    np.array(["1"]),
    np.array([[1.0]]),
    pd.Series(["a"]),
]


def taught() -> Any:
    model = varifold.OLVF()
    model.learn_one({"a": 1.0}, "x")
    model.learn_one({"b": 1.0}, "y")
    return model


def rejected(model: Any, call: Callable[[], Any], error: type[Exception], match: str) -> None:
    before = state(model)
    with pytest.raises(error, match=match):
        call()
    assert state(model) == before


@pytest.mark.parametrize("X", ONE.values(), ids=ONE)
@pytest.mark.parametrize("w", NO_WEIGHTS)
def test_weights_that_are_no_sequence(X: Any, w: Any) -> None:
    model = taught()
    match = f"w is a {type(w).__name__}; pass a sequence of weights"
    rejected(model, lambda: model.learn_many(X, ["x"], w), DataError, match)
    rejected(model, lambda: model.predict_learn_many(X, ["x"], w), DataError, match)


@pytest.mark.parametrize("X", ONE.values(), ids=ONE)
@pytest.mark.parametrize("w", NO_NUMBERS)
def test_weights_that_are_no_numbers(X: Any, w: Any) -> None:
    model = taught()
    rejected(model, lambda: model.learn_many(X, ["x"], w), DataError, "weights are finite numbers >= 0")


NUMBERS: list[Any] = [[2], (2.0,), [np.float32(2)], [Fraction(2)], [Decimal(2)], np.array([2]), pd.Series([2.0])]


@pytest.mark.parametrize("w", NUMBERS)
def test_weights_of_every_numeric_type(w: Any) -> None:
    one = taught()
    one.learn_one({"a": 1.0}, "x", 2.0)
    for kind, X in ONE.items():
        many = taught()
        many.learn_many(varifold.to_block(X, ["x"], w, names=["a"] if kind == "array" else None))
        assert state(many) == state(one)


@pytest.mark.parametrize(
    "y", [5, object(), "x", {"a": 1}, {"x"}, sparse.coo_matrix([[1.0]]), sparse.csr_array([[1.0]])]
)
def test_labels_that_are_no_sequence(y: Any) -> None:
    model = taught()
    for X in ONE.values():
        rejected(model, lambda X=X: model.learn_many(X, y), DataError, "pass a sequence of labels, one per instance")


@pytest.mark.parametrize("names", [3, "a", {"a": 1}, {"a"}])
def test_names_that_are_no_sequence(names: Any) -> None:
    with pytest.raises(DataError, match="pass a sequence of feature names"):
        varifold.to_block(ONE["array"], names=names)


def test_names_from_an_iterator_and_names_for_what_has_its_own() -> None:
    assert varifold.to_block(np.ones((1, 2)), names=iter("ab")).row(0) == {"a": 1.0, "b": 1.0}
    for kind in ("dicts", "frame"):
        with pytest.raises(DataError, match="names are for arrays and sparse matrices"):
            varifold.to_block(ONE[kind], names=["z"])


@pytest.mark.parametrize("name", ["vocabulary", "labels"])
def test_tables_of_another_type(name: str) -> None:
    for X in ONE.values():
        with pytest.raises(DataError, match=f"{name} must be a {name.title()} or None. Got a int instead"):
            varifold.to_block(X, ["x"], **{name: 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("block", [None, 3, [{"a": 1.0}], np.zeros((1, 1))])
def test_a_block_that_is_none(block: Any) -> None:
    model = taught()
    rejected(model, lambda: model.run_block(block), DataError, "run_block takes a Block")


@pytest.mark.parametrize("schedule", ["a", [1.5], [[1]], 3, [None], [10**30], [True], np.array([1j])])
def test_a_schedule_of_another_type(schedule: Any) -> None:
    model = taught()
    block = varifold.to_block([{"a": 1.0}], ["x"])
    rejected(
        model, lambda: model.run_block(block, schedule), DataError, "a schedule is a one-dimensional array of ints"
    )


def test_a_schedule_as_a_list() -> None:
    block = varifold.to_block([{"a": 1.0}], ["x"])
    listed, array, unchanged = taught(), taught(), taught()
    assert listed.run_block(block, [1, -1])[0].tolist() == array.run_block(block, np.array([1, -1]))[0].tolist()
    assert state(listed) == state(array)
    unchanged.run_block(block, [])
    assert state(unchanged) == state(taught())


@pytest.mark.parametrize("label", [[], {}, "zz", pd.NA, np.array([1, 2])])
def test_explaining_a_label_that_is_none_of_the_known(label: Any) -> None:
    model = taught()
    rejected(
        model, lambda: model.explain_one({"a": 1.0}, label), UnknownNameError, "has not been learned; known labels"
    )


@pytest.mark.parametrize("name", [None, 3, [], varifold.OLVF])
def test_a_model_name_of_another_type(name: Any) -> None:
    assert name not in varifold.models
    with pytest.raises(UnknownNameError, match="a model's name is a str"):
        varifold.models[name]


@pytest.mark.parametrize("coverage", [[0], [1], [math.nan], [10**400], [10**5_000], ["0.9"], [True]])
def test_a_coverage_that_is_none(coverage: list[Any]) -> None:
    model = varifold.OLVF(coverages=(0.9,))
    with pytest.raises(ParameterError, match="a coverage lies above 0 and below 1"):
        model.predict_set_one({"a": 1.0}, *coverage)


@pytest.mark.parametrize("model", [None, 5, [], [10**5_000], varifold.OLVF])
def test_a_learner_by_key_that_is_none(model: Any) -> None:
    with pytest.raises(ParameterError, match="a learner is the name of a model"):
        varifold.PerKey(model)


@pytest.mark.parametrize("params", [{"C": 10**5_000}, {"max_features": 10**5_000}, {"costs": [10**5_000]}])
def test_numbers_that_python_does_not_write(params: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="Got a number of thousands of digits"):
        varifold.OLVF(**params)


@pytest.mark.parametrize("params", [{"C": 10**400}, {"max_features": 10**30}, {"max_features": -(10**30)}, {"C": "1"}])
def test_numbers_beyond_the_machines(params: Any) -> None:
    with pytest.raises(ParameterError, match=f"The '{next(iter(params))}' parameter of OLVF must be"):
        varifold.OLVF(**params)


def test_a_class_as_base_learner() -> None:
    with pytest.raises(ParameterError, match="The 'base' parameter of OVFIV must be"):
        varifold.OVFIV(base=varifold.OLVF)


@pytest.mark.parametrize("path", [None, 3, object(), b"model"])
def test_a_path_of_another_type(path: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="the path of a model file is a str or a Path"):
        varifold.load(path)
    with pytest.raises(ModelFileError, match="the path of a model file is a str or a Path"):
        varifold.OLVF().save(path)


@pytest.mark.parametrize("name", varifold.models)
def test_no_whole_number_overflows_compiled_code(name: str) -> None:
    cls = varifold.models[name]
    for parameter in inspect.signature(cls).parameters:
        for value in (2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**400):
            with contextlib.suppress(VarifoldError):  # any other error fails the test
                cls(**{parameter: value})


def test_a_whole_bound_is_written_with_all_digits() -> None:
    with pytest.raises(ParameterError, match=r"must be an int >= 1 and <= 2147483647\. Got 2147483648 instead"):
        varifold.ORF3V(grace=2**31)


METHODS: dict[str, Any] = {**varifold.models, **varifold.detectors, **transformers}


@pytest.mark.parametrize("name", METHODS)
def test_parameters_that_are_arrays_are_rejected_by_name(name: str) -> None:
    for parameter in METHODS[name]._constraints().keys() & METHODS[name]()._get_params().keys():
        with pytest.raises(ParameterError, match=f"The '{parameter}' parameter of"):
            METHODS[name](**{parameter: np.array([1, 2])})


@pytest.mark.parametrize("name", METHODS)
def test_parameters_may_be_strings_of_numpy(name: str) -> None:
    """A search over an array of choices passes them."""
    texts = {key: text for key, text in METHODS[name]()._get_params().items() if isinstance(text, str)}
    made = METHODS[name](**{key: np.str_(text) for key, text in texts.items()})
    assert all(type(made._get_params()[key]) is str for key in texts)
    assert made.to_bytes() == METHODS[name]().to_bytes()
