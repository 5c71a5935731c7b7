"""Predictions come in the form of the input: frames for frames, with their index; lists for everything else."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from scipy import sparse

import varifold
from varifold import PerKey, streams
from varifold.base import to_block
from varifold.checks.material import state
from varifold.errors import DataError, FeatureNameError, LabelError
from varifold.sklearn import VarifoldClassifier

ROWS = [{"a": float(t % 3), "b": float(t)} for t in range(8)]
INDEX = list("stuvwxyz")
FRAMES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "pandas": lambda rows: pd.DataFrame(rows, index=INDEX[: len(rows)]),
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
}
SERIES: dict[str, type] = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.Array}
TYPED = ["polars", "pyarrow"]


def taught(labels: tuple[Any, ...]) -> varifold.OLVF:
    model = varifold.OLVF()
    for t in range(60):
        model.learn_one({"a": float(t % 3), "b": float(t % 8)}, labels[(t % 8 > 3) * (len(labels) - 1)])
    for label in labels:
        model.learn_one({}, label)
    return model


def plain(column: Any) -> list[Any]:
    found: list[Any] = column.to_pylist() if isinstance(column, pa.Array) else column.to_list()
    return found


def table(frame: Any) -> dict[str, list[float]]:
    if isinstance(frame, pa.Table):
        return {name: frame[name].to_pylist() for name in frame.column_names}
    return {name: frame[name].to_list() for name in frame.columns}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (False, True), (0.5, 1.5), (b"n", b"y"), (1, 2.5)], ids=str)
def test_a_frame_gets_its_own_kind(kind: str, labels: tuple[Any, ...]) -> None:
    model, X = taught(labels), FRAMES[kind](ROWS)
    predicted = model.predict_many(X)
    assert isinstance(predicted, SERIES[kind])
    assert plain(predicted) == model.predict_many(ROWS)
    assert set(plain(predicted)) == set(labels)
    proba = model.predict_proba_many(X)
    assert type(proba) is type(X)
    rows = model.predict_proba_many(ROWS)
    assert table(proba) == {str(label): [row[label] for row in rows] for label in labels}


def test_pandas_keeps_the_index() -> None:
    model, X = taught(("no", "yes")), FRAMES["pandas"](ROWS)
    for prediction in (model.predict_many(X), model.predict_proba_many(X), model.predict_learn_many(X, ["no"] * 8)):
        assert list(prediction.index) == INDEX
    shuffled = X.iloc[::-1]
    assert model.predict_many(shuffled)["s"] == model.predict_one(ROWS[0])


@pytest.mark.parametrize("kind", FRAMES)
def test_predicting_and_learning(kind: str) -> None:
    one, many = varifold.OLVF(), varifold.OLVF()
    y = [0, 1] * 4
    predicted = many.predict_learn_many(FRAMES[kind](ROWS), y)
    assert isinstance(predicted, SERIES[kind])
    assert plain(predicted) == one.predict_learn_many(ROWS, y)
    assert plain(predicted)[0] is None
    assert type(plain(predicted)[1]) is int
    assert state(many) == state(one)


@pytest.mark.parametrize("kind", FRAMES)
def test_before_any_label(kind: str) -> None:
    model, X = varifold.OLVF(), FRAMES[kind](ROWS)
    assert plain(model.predict_many(X)) == [None] * 8
    proba = model.predict_proba_many(X)
    assert type(proba) is type(X)
    assert table(proba) == {}
    assert kind != "pandas" or list(proba.index) == INDEX


@pytest.mark.parametrize("kind", FRAMES)
def test_labels_of_the_same_column_name_are_rejected(kind: str) -> None:
    model = taught((1, "1"))
    with pytest.raises(DataError, match="the labels 1 and '1' would both name the column '1'"):
        model.predict_proba_many(FRAMES[kind](ROWS))
    assert set(model.predict_proba_many(ROWS)[0]) == {1, "1"}


def test_pandas_holds_labels_of_any_type() -> None:
    for labels in ((1, "1"), (("a", 1), ("b", 2)), (True, "x"), (10**30, 0)):
        model = taught(labels)
        assert plain(model.predict_many(FRAMES["pandas"](ROWS))) == model.predict_many(ROWS)


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize(
    ("labels", "match"),
    [((1, "1"), "int and str"), ((("a", 1), ("b", 2)), "tuple"), ((True, 2), "bool and int"), ((0, 10**30), "64 bits")],
    ids=str,
)
def test_labels_that_no_column_holds_are_rejected_before_anything_is_learned(
    kind: str, labels: tuple[Any, ...], match: str
) -> None:
    X = FRAMES[kind](ROWS)
    with pytest.raises(DataError, match=match):
        taught(labels).predict_many(X)
    model = varifold.OLVF()
    before = state(model)
    with pytest.raises(DataError, match=f"{match}.*pass the instances as dicts"):
        model.predict_learn_many(X, list(labels) * 4)
    assert state(model) == before
    model.learn_many(X, list(labels) * 4)


def test_everything_else_gets_lists() -> None:
    model = taught(("no", "yes"))
    dense = np.array([[row["a"], row["b"]] for row in ROWS])
    named = varifold.to_block(ROWS)
    for X in (ROWS, tuple(ROWS), iter(ROWS), named, dense, sparse.csr_array(dense)):
        assert isinstance(model.predict_many(X), list)
    for X in (ROWS, named, dense):
        proba = model.predict_proba_many(X)
        assert isinstance(proba, list)
        assert isinstance(proba[0], dict)
    assert model.predict_proba_many([]) == []
    assert varifold.OLVF().predict_proba_many(ROWS) == [{}] * 8


@pytest.mark.parametrize("dtype", ["string", "category", "object"])
def test_a_missing_text_of_pandas_is_absent(dtype: str) -> None:
    frame = pd.DataFrame(
        {"c": pd.Series(["a", None, "b"], dtype=dtype), "n": pd.array([1.0, None, 2.0], dtype="Float64")}
    )
    found = varifold.to_block(frame, [0, 1, 0])
    assert list(found.rows()) == [{"c": "a", "n": 1.0}, {}, {"c": "b", "n": 2.0}]


def test_masked_cells_are_absent() -> None:
    masked = np.ma.array([[1.0, 999.0], [2.0, 3.0]], mask=[[False, True], [False, False]])
    assert list(varifold.to_block(masked).rows()) == [{0: 1.0}, {0: 2.0, 1: 3.0}]
    whole = np.ma.array([[1, 999], [2, 3]], mask=[[False, True], [False, False]])
    assert list(varifold.to_block(whole).rows()) == [{0: 1.0}, {0: 2.0, 1: 3.0}]
    objects = np.ma.array([["x", "?"], ["y", "z"]], mask=[[False, True], [False, False]], dtype=object)
    assert list(varifold.to_block(objects).rows()) == [{0: "x"}, {0: "y", 1: "z"}]


def test_a_numpy_matrix_is_an_array() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix([[1.0, 2.0]])
    assert list(varifold.to_block(matrix).rows()) == [{0: 1.0, 1: 2.0}]


def test_whole_numbers_beyond_2_53_with_a_null_are_rounded() -> None:
    for kind, first, column in (
        (pa.table, 2**64 - 1, pa.array([2**64 - 1, None, 3], pa.uint64())),
        (pa.table, -(2**62) - 1, pa.array([-(2**62) - 1, None, 3], pa.int64())),
        (pd.DataFrame, 2**63 - 1, pd.array([2**63 - 1, None, 3], dtype="Int64")),
        (pl.DataFrame, 2**100 + 1, pl.Series([2**100 + 1, None, 3], dtype=pl.Int128)),
    ):
        assert list(varifold.to_block(kind({"n": column})).rows()) == [{"n": float(first)}, {}, {"n": 3.0}]
    booleans = pd.DataFrame({"n": pd.array([True, None], dtype="boolean")})
    assert list(varifold.to_block(booleans).rows()) == [{"n": 1.0}, {}]


def test_two_columns_of_one_name_are_rejected_by_that_name() -> None:
    for frame in (
        pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["twice", "twice"]),
        pd.DataFrame([[1, 2], [3, 4]], columns=["twice", "twice"]),
    ):
        with pytest.raises(FeatureNameError, match="more than one column 'twice'"):
            varifold.to_block(frame)
        with pytest.raises(FeatureNameError, match="more than one column 'twice'"):
            VarifoldClassifier("arow").fit(frame, ["a", "b"])


@pytest.mark.parametrize("numeric", [False, True])
def test_an_array_without_dimensions_is_no_sequence(numeric: bool) -> None:
    with pytest.raises(DataError, match="y is a ndarray"):
        varifold.to_block(ROWS[:1], np.array(1), numeric=numeric)
    with pytest.raises(DataError, match="w is a ndarray"):
        varifold.to_block(ROWS[:1], [1], np.array(1.0), numeric=numeric)


def test_a_frame_with_a_number_to_predict_is_rejected_before_each_is_a_class():
    frame = pd.DataFrame({"load": np.arange(200.0)})
    numbers = np.arange(200.0) / 7
    for learn in (varifold.AROW().learn_many, varifold.AROW().predict_learn_many):
        with pytest.raises(LabelError, match=r"200 different labels among the first 200 rows.*AutoRegressor"):
            learn(frame, numbers)
    model = varifold.AROW()
    model.learn_many(varifold.to_block(frame[:60], numbers[:60]))
    assert len(model.classes) == 60
    model.learn_many(frame, numbers)  # the labels are known to be classes by now
    assert len(model.classes) == 200


def test_columns_of_pyarrow_whose_offsets_lie_outside_their_memory_are_rejected() -> None:
    """Such as of a file that was damaged, which pyarrow reads without checking it."""
    offsets = pa.py_buffer(np.array([0, 1 << 30, 4], dtype=np.int32).tobytes())
    wrong = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"text"))
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 99], type=pa.int32()), pa.array(["a"]), safe=False)
    model = taught(("x", "y"))
    before = state(model)
    calls: list[Callable[[Any], Any]] = [
        lambda column: model.predict_many(pa.table({"a": column})),
        lambda column: model.learn_many(pa.table({"a": column}), ["x", "y"]),
        lambda column: model.learn_many([{"a": 1.0}, {"a": 2.0}], column),
        lambda column: model.learn_many(pa.table({"a": [1.0, 2.0]}), ["x", "y"], column),
    ]
    for column in (wrong, codes):
        for call in calls:
            with pytest.raises(DataError, match="of pyarrow cannot be read"):
                call(column)
    assert state(model) == before


@pytest.mark.parametrize("chunks", [True, False], ids=["chunked", "whole"])
def test_labels_targets_and_weights_may_be_columns_of_pyarrow(chunks: bool) -> None:
    """A column of a table is a ChunkedArray, whose cells are scalars of pyarrow: not equal to strings, never None."""
    frame = pa.table(
        {"a": [1.0, 2.0, 3.0, 4.0], "y": ["p", "q", None, "p"], "n": [1.5, None, 2.5, 3.5], "w": [1, 2, 3, 4]}
    )
    y, n, w = (frame[name] if chunks else frame[name].combine_chunks() for name in ("y", "n", "w"))
    X = frame.select(["a"])
    classifier, expected = varifold.AROW(), varifold.AROW()
    for one in (y, y.dictionary_encode()):
        classifier.learn_many(X, one, w)
        expected.learn_many(X, one.to_pylist(), w.to_pylist())
    assert classifier.classes == ["p", "q"]
    assert state(varifold.from_bytes(classifier.to_bytes())) == state(expected)
    regressor, other = varifold.AdditiveRegressor(), varifold.AdditiveRegressor()
    regressor.learn_many(X, n, w)
    other.learn_many(X, n.to_pylist(), w.to_pylist())
    assert state(regressor) == state(other)


BEYOND: dict[str, Callable[[], Any]] = {
    "timestamps": lambda: pa.table({"a": pa.array([0, 2**62], pa.timestamp("us")), "b": [1.0, 2.0]}),
    "dates": lambda: pa.table({"a": pa.array([0, 2**31 - 9], pa.int32()).view(pa.date32()), "b": [1.0, 2.0]}),
    "spans": lambda: pa.table({"a": pa.array([0, 2**62], pa.duration("s")), "b": [1.0, 2.0]}),
    "zone": lambda: pa.table({"a": pa.array([0, 1], pa.timestamp("s", "Nowhere/City")), "b": [1.0, 2.0]}),
    "lists": lambda: pa.table({"a": pa.array([[0], [2**62]], pa.list_(pa.timestamp("us"))), "b": [1.0, 2.0]}),
    "polars timestamps": lambda: pl.DataFrame({"a": [0, 2**62], "b": [1.0, 2.0]}).cast({"a": pl.Datetime("ms")}),
    "polars dates": lambda: pl.DataFrame(
        {"a": pl.Series([-(2**30), None], dtype=pl.Int32).cast(pl.Date), "b": [1.0, 2.0]}
    ),
    "polars spans": lambda: pl.DataFrame({"a": [0, 2**62], "b": [1.0, 2.0]}).cast({"a": pl.Duration("ms")}),
    "polars zone": lambda: pl.DataFrame({"a": [0, 253402300799999], "b": [1.0, 2.0]}).cast(
        {"a": pl.Datetime("ms", "Asia/Tokyo")}
    ),
    "polars lists": lambda: pl.DataFrame({"a": [[0], [2**62]], "b": [1.0, 2.0]}).cast(
        {"a": pl.List(pl.Datetime("ms"))}
    ),
    "polars arrays": lambda: pl.DataFrame({"a": [[0], [2**62]], "b": [1.0, 2.0]}).cast(
        {"a": pl.Array(pl.Datetime("ms"), 1)}
    ),
    "polars structs": lambda: pl.DataFrame({"a": [{"t": 0}, {"t": 2**62}], "b": [1.0, 2.0]}).cast(
        {"a": pl.Struct({"t": pl.Datetime("ms")})}
    ),
    "pandas timestamps of Arrow": lambda: pd.DataFrame({"b": [1.0, 2.0]}).assign(
        a=pd.Series(pa.array([0, 2**62], pa.timestamp("us")), dtype=pd.ArrowDtype(pa.timestamp("us")))
    ),
}


@pytest.mark.parametrize("kind", BEYOND)
def test_times_that_python_cannot_hold_are_rejected(kind: str, tmp_path: Path) -> None:
    """Some libraries end in OverflowError, ArrowInvalid or a panic when they convert such a cell."""
    frame, model = BEYOND[kind](), taught(("x", "y"))
    before = state(model)
    calls: list[Callable[[], Any]] = [
        lambda: model.predict_many(frame),
        lambda: model.learn_many(frame, ["x", "y"]),
        lambda: list(streams.read(frame, target="b").blocks()),
        lambda: list(streams.read(frame, target="a").blocks()),
        lambda: list(streams.read(frame, target="b", dates={"a": ["hour"]}).blocks()),
    ]
    if isinstance(frame, pa.Table):
        feather.write_feather(frame, str(tmp_path / "file.arrow"))
        calls.append(lambda: list(streams.read(tmp_path / "file.arrow", target="b").blocks()))
    keyed = PerKey(varifold.AROW(), key="k")
    calls += [
        lambda: model.learn_many([{"b": 1.0}, {"b": 2.0}], frame["a"]),
        lambda: model.learn_many([{"b": 1.0}, {"b": 2.0}], ["x", "y"], frame["a"]),
        lambda: keyed.learn_many([{"k": 1}, {"k": 1}], frame["a"]),
    ]
    for call in calls:
        with pytest.raises(DataError, match="holds what Python cannot: dates are of the years 1 to 9999"):
            call()
    assert state(model) == before
    (rest,) = streams.read(frame, target="b", ignore=["a"]).blocks()
    assert list(rest.rows()) == [{}, {}]


def test_times_of_the_first_and_the_last_year_are_read() -> None:
    days = pa.array([-719_162, 2_932_896, None], pa.int32()).view(pa.date32())
    for frame in (
        pa.table({"a": days, "b": [1.0, 2.0, 3.0]}),
        pl.DataFrame({"a": pl.from_arrow(days), "b": [1.0, 2.0, 3.0]}),
    ):
        (block,) = streams.read(frame, target="b", dates={"a": ["year"]}).blocks()
        assert [x.get("a:year") for x in block.rows()] == [1.0, 9999.0, None]


def test_a_column_of_a_type_that_narwhals_does_not_know_is_rejected() -> None:
    """Some versions of narwhals know it: then it is read."""
    frame = pa.table({"a": pa.array([Decimal(1200), None], pa.decimal128(6, -2))})
    try:
        nw.from_native(frame).schema  # noqa: B018
    except ValueError:
        with pytest.raises(DataError, match="a column of a type that cannot be read"):
            varifold.AROW().learn_many(frame, ["x", "y"])
    else:
        assert list(to_block(frame).rows()) == [{"a": 1200.0}, {}]
