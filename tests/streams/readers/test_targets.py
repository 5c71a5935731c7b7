"""Targets: classes or numbers to predict, by their first rows; one value is reported, missing ones are named."""

import gc
import json
import weakref

import numpy as np
import pytest

import varifold
from varifold import streams
from varifold.cli import main
from varifold.errors import DataError, LabelError, ParameterError, VarifoldWarning


def prices(values):
    return [{"a": float(i), "price": y} for i, y in enumerate(values)]


def write(path, values, target="price"):
    path.write_text(f"a,{target}\n" + "".join(f"{i},{y}\n" for i, y in enumerate(values)))
    return str(path)


@pytest.mark.parametrize("kind", ["csv", "svm", "dicts", "frame", "matrix"])
def test_a_quantity_is_a_number_to_predict(tmp_path, kind):
    values = [i + 0.5 for i in range(51)]
    options = {"target": "price"}
    if kind == "csv":
        data = write(tmp_path / "reg.csv", values)
    elif kind == "svm":
        data = tmp_path / "reg.svm"
        data.write_text("".join(f"{y} 1:1\n" for y in values))
        options = {}
    elif kind == "dicts":
        data = prices(values)
    elif kind == "frame":
        data = pytest.importorskip("pandas").DataFrame(prices(values))
    else:
        data, options = np.ones((51, 2)), {"target": values}
    stream = streams.read(data, **options)
    assert stream.target_type == "number"
    (block,) = stream.blocks()
    assert block.y == values
    assert not len(block.labels)
    (block,) = streams.read(data, target_type="class", **options).blocks()
    assert block.labels.values == values


@pytest.mark.parametrize(
    "values",
    [
        [i % 25 + 0.5 for i in range(50)],
        list(range(10)),
        [0.5, 1.5] * 6,
        [i % 200 for i in range(500)],
        [f"name{i % 200}" for i in range(500)],
        [*[f"name{i % 51}" for i in range(153)], 0.5],
        [float(i % 7) + 0.25 for i in range(500)],
    ],
)
def test_classes_are_no_numbers_to_predict(values):
    assert streams.read(prices(values), target="price").target_type == "class"
    (block,) = streams.read(prices(values), target="price").blocks()
    assert len(block.labels) == len(set(values))


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (list(range(500)), "target_type='number'"),
        ([f"name{i}" for i in range(500)], "choose another target if they identify the rows; target_type='class'"),
        ([*[f"name{i}" for i in range(50)], 0.5], "choose another target"),
        ([f"{i},5 x {i}" for i in range(500)], "decimal=','"),
    ],
)
def test_labels_most_of_which_are_different_are_rejected(values, remedy):
    with pytest.raises(DataError, match=f"different labels among the first {len(values)} rows.*{remedy}"):
        list(streams.read(prices(values), target="price").blocks())
    (block,) = streams.read(prices(values), target="price", target_type="class").blocks()
    assert len(block.labels) == len(values)


def test_dates_are_no_classes():
    values = [f"2026-03-{1 + i % 28:02}" for i in range(500)]
    with pytest.raises(DataError, match=r"'price' holds dates such as '2026-03-01'; choose another target.*'class'"):
        list(streams.read(prices(values), target="price").blocks())
    assert streams.read(prices(values), target="price", target_type="class").target_type == "class"
    assert streams.read(prices(["2026-01", "2026-02"] * 50), target="price").target_type == "class"


@pytest.mark.parametrize(
    "values", [[i + 0.5 for i in range(11)], [3 * i for i in range(51)], [i / 3 for i in range(1500)]], ids=len
)
def test_many_or_scattered_numbers_are_a_quantity(values):
    assert streams.read(prices(values), target="price").target_type == "number"


def test_any_number_is_predicted_on_request(tmp_path):
    path = write(tmp_path / "reg.csv", [1, 2, 1, 2])
    (block,) = streams.read(path, target="price", target_type="number").blocks()
    assert block.y == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(ParameterError, match="target_type must be 'class', 'number' or None"):
        streams.read(path, target="price", target_type="float")


def test_what_is_no_number_is_reported_or_skipped(tmp_path):
    path = write(tmp_path / "reg.csv", ["1.5", "low", "2.5", "inf"])
    with pytest.raises(DataError, match=r"reg\.csv, line 3, column 'price': 'low' is not a finite number"):
        list(streams.read(path, target="price", target_type="number").blocks())
    stream = streams.read(path, target="price", target_type="number", on_error="skip")
    (block,) = stream.blocks()
    assert block.y == [1.5, 2.5]
    assert stream.skipped == 2


def test_a_long_stream_of_numbers_keeps_no_table_of_them(tmp_path):
    path = write(tmp_path / "reg.csv", [i / 7 for i in range(1000)])
    stream = streams.read(path, target="price", block_rows=100)
    found = [y for block in stream.blocks() for y in block.y]
    assert found == [i / 7 for i in range(1000)]
    assert not len(stream.labels)


def test_looking_at_the_target_loses_nothing(tmp_path):
    values = [i / 7 for i in range(300)]
    rows = iter(prices(values))
    stream = streams.read(rows, target="price", block_rows=50)
    assert stream.target_type == "number"
    assert [y for block in stream.blocks() for y in block.y] == values
    with pytest.raises(DataError, match="only once"):
        stream.blocks()
    again = streams.read(write(tmp_path / "reg.csv", values), target="price", block_rows=50)
    assert again.target_type == "number"
    for _ in range(2):
        assert [y for block in again.blocks() for y in block.y] == values


def test_unlabelled_rows_of_numbers_are_kept_on_request(tmp_path):
    path = write(tmp_path / "reg.csv", ["1.5", "", "2.5"])
    (block,) = streams.read(path, target="price", target_type="number", unlabelled="keep").blocks()
    assert block.y == [1.5, None, 2.5]


def test_the_command_line_chooses_by_the_target(tmp_path, capsys):
    path = write(tmp_path / "reg.csv", [i / 3 for i in range(100)])
    assert main(["run", path, "--target", "price", "--model", "olsf"]) == 2
    error = capsys.readouterr().err
    assert "the target is a number, and olsf is a classifier; use a regressor (" in error
    assert "--target-type class" in error
    assert error.count("\n") == 1
    assert main(["run", path, "--target", "price", "--model", "ogd", "--target-type", "class"]) == 0
    assert "100 classes" in capsys.readouterr().out
    assert main(["run", path, "--target", "price", "--model", "arow"]) == 0
    message = capsys.readouterr()
    assert "targets from 0.333333 to 33" in message.out
    assert "the target is a number" in message.err
    assert "arowregressor predicts it" in message.err
    assert main(["data", "show", path, "--target", "price"]) == 0
    assert "numbers to predict from 0 to 33" in capsys.readouterr().out


def test_a_learner_takes_any_label():
    learner = varifold.OLVF()
    learner.learn_one({"a": 1.0}, 3.7)
    assert learner.predict_one({"a": 1.0}) == 3.7


def test_one_value_is_reported(tmp_path, capsys):
    path = write(tmp_path / "one.csv", [7] * 30)
    with pytest.warns(VarifoldWarning, match="the target column 'price' has a single value, 7, in all 30 rows"):
        list(streams.read(path, target="price").blocks())
    with pytest.warns(VarifoldWarning, match="a single value"):
        assert main(["run", path, "--target", "price", "--model", "olvf"]) == 0


class TestMissingLabels:
    """pandas' NA has no truth value; it is a missing label like None and NaN."""

    @pytest.fixture
    def pandas(self):
        return pytest.importorskip("pandas")

    @pytest.mark.parametrize("kind", ["Int64", "object", "string"])
    def test_in_frames(self, pandas, kind):
        labels = ["p", "q", "p"] if kind == "string" else [1, 2, 1]
        column = pandas.Series([labels[0], pandas.NA, labels[2]], dtype=kind)
        frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": column})
        with pytest.raises(DataError, match="line 2: no label in column 'y'"):
            list(streams.read(frame, target="y").blocks())
        stream = streams.read(frame, target="y", on_error="skip")
        assert [y for block in stream.blocks() for y in block.y] == [labels[0], labels[2]]
        assert stream.skipped == 1

    def test_in_dicts(self, pandas):
        rows = [{"a": pandas.NA, "b": 1.0, "y": 1}, {"a": 1.0, "y": pandas.NA}]
        stream = streams.read(rows, target="y", on_error="skip")
        assert [list(block.rows()) for block in stream.blocks()] == [[{"b": 1.0}]]
        assert stream.problems == ["the iterable, line 2: no label in column 'y'"]

    def test_as_values_and_weights_of_frames(self, pandas):
        frame = pandas.DataFrame(
            {
                "a": pandas.Series([1.0, pandas.NA, "z"], dtype=object),
                "t": ["one two"] * 3,
                "w": pandas.array([2, None, 3], dtype="Int64"),
                "y": [0, 1, 0],
            }
        )
        with pytest.warns(VarifoldWarning, match="'a' also held 1 text such as 'z'"):
            (block,) = streams.read(frame, target="y", weight="w", types={"t": "text"}).blocks()
        assert [list(x) for x in block.rows()] == [["a", "t:one", "t:two"], ["t:one", "t:two"], ["a", "t:one", "t:two"]]
        assert block.weights.tolist() == [2.0, 1.0, 3.0]

    def test_next_to_a_matrix(self, pandas):
        with pytest.raises(LabelError, match="the label of row 2 is missing"):
            list(streams.read(np.ones((3, 2)), target=[1, pandas.NA, 0]).blocks())
        with pytest.raises(DataError, match="a sequence of labels, one per row"):
            list(streams.read(np.ones((3, 2)), target="y").blocks())

    def test_in_an_evaluation(self, pandas):
        stream = [({"a": 1.0}, pandas.NA), ({"a": 1.0}, 1), ({"a": 2.0}, float("nan")), ({"a": 2.0}, 0)]
        result = varifold.evaluate.prequential(varifold.OLVF(), stream)
        assert (result.unlabelled, result.labels) == (2, [1, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": 5}, "types must be a dict"),
        ({"absent": "NA"}, "absent must be a list of strings"),
        ({"absent": None}, "absent must be a list of strings"),
        ({"ignore": "a"}, "ignore must be a list of strings"),
        ({"ignore": [1.5]}, "ignore must be a list of strings"),
        ({"id": ["a"]}, "id must be the name of a column"),
        ({"block_rows": "8"}, "block_rows must be a whole number"),
    ],
)
def test_options_of_the_wrong_type(options, message):
    with pytest.raises(ParameterError, match=message):
        streams.read([{"a": 1.0}], **options)


def test_numbers_of_a_category_column_are_its_levels():
    rows = [{"a": float("inf"), "y": 1}, {"a": 3.0, "y": 0}, {"a": float("nan"), "b": 1.0, "y": 0}]
    (block,) = streams.read(rows, target="y", types={"a": "category"}).blocks()
    assert list(block.rows()) == [{"a": "inf"}, {"a": "3"}, {"b": 1.0}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "delimiter must be one ASCII character"),
        ({"delimiter": 5}, "delimiter must be one ASCII character"),
        ({"delimiter": "€"}, "delimiter must be one ASCII character"),
        ({"decimal": "ab"}, "decimal must be"),
        ({"target": 5}, "target must be the name of a column"),
    ],
)
def test_options_of_text_files_of_the_wrong_type(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        streams.read(write(tmp_path / "rows.csv", [0, 1]), **options)


def test_an_encoding_is_a_name(tmp_path):
    with pytest.raises(DataError, match="no encoding is called 3"):
        list(streams.read(write(tmp_path / "rows.csv", [0, 1]), encoding=3).blocks())


@pytest.mark.parametrize("given", [np.ones(3), np.float64(3)])
def test_an_array_has_two_dimensions(given):
    with pytest.raises(DataError, match="two dimensions"):
        list(streams.read(given).blocks())


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame", "dicts"])
def test_rows_without_a_label_are_kept_on_request(tmp_path, form):
    polars = pytest.importorskip("polars")
    rows = [{"a": 1.0, "w": 1.0, "y": "up"}, {"a": 2.0, "w": 2.0, "y": None}, {"a": 3.0, "w": 3.0, "y": "down"}]
    given: object = rows
    if form == "csv":
        given = tmp_path / "rows.csv"
        given.write_text("a,w,y\n1,1,up\n2,2,\n3,3,down\n")
    elif form == "jsonl":
        given = tmp_path / "rows.jsonl"
        given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "parquet":
        given = tmp_path / "rows.parquet"
        polars.DataFrame(rows).write_parquet(given)
    elif form == "frame":
        given = polars.DataFrame(rows)
    (block,) = streams.read(given, target="y", weight="w", unlabelled="keep").blocks()
    assert [block.labels.values[c] if c >= 0 else None for c in block.codes] == ["up", None, "down"]
    assert block.weights.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(DataError, match="no label"):
        list(streams.read(given, target="y").blocks())


def test_unlabelled_is_raise_or_keep():
    with pytest.raises(ParameterError, match="unlabelled must be"):
        streams.read([{"a": 1.0}], unlabelled="drop")


def test_a_stream_whose_first_rows_showed_the_target_is_freed_and_closes_its_file(tmp_path):
    gc.disable()  # without a cycle of references nothing waits for the next collection
    try:
        stream = streams.read(write(tmp_path / "long.csv", [i % 2 for i in range(100_000)]), target="price")
        assert stream.target_type == "class"
        alive = weakref.ref(stream)
        del stream
        assert alive() is None
    finally:
        gc.enable()
