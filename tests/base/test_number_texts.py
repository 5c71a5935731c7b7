"""Numbers that come as texts, each of which would be a category without a word."""

import csv
import json
import warnings

import pytest

import varifold
from varifold import streams
from varifold.base.number_texts import are_numbers
from varifold.errors import VarifoldWarning
from varifold.evaluate import prequential

GERMAN = [f"{1 + i % 9}.{100 + i},{i % 90 + 10}" for i in range(60)]
LABELS = ["up", "down"] * 30


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (GERMAN, True),
        ([f"{i}.5" for i in range(30)], True),
        ([f"-{i},5" for i in range(30)], True),
        ([f"1.{i}e-3" for i in range(30)], True),
        ([f"E{100 + i}" for i in range(30)], False),
        ([f"030 {100 + i} 000" for i in range(30)], False),
        ([f".{i}" for i in range(30)], True),
        ([f"{i}.5" for i in range(19)], False),
        ([f"{10_000 + i}" for i in range(30)], False),
        ([f"{i}" for i in range(30)], True),
        ([f"{10 + i}" for i in range(95)], True),
        ([f"{i:05}" for i in range(30)], False),
        ([*[f"{10 + i}" for i in range(95)], "007"], False),
        ([f"{i:02}.03.2026" for i in range(1, 31)], False),
        ([f"10.0.0.{i}" for i in range(30)], False),
        ([*[f"{i}.5" for i in range(30)], "-"], False),
        ([*[f"{i}.5" for i in range(30)], "n/a"], False),
    ],
)
def test_what_is_a_number(texts, expected):
    assert are_numbers(list(dict.fromkeys(texts))) is expected


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_with_decimal_commas(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"area": GERMAN, "zip": [f"{10_000 + i}" for i in range(60)]})
    message = r"'area' holds numbers as texts, such as '1\.100,10'.*decimal=','"
    with pytest.warns(VarifoldWarning, match=message) as caught:
        varifold.AROW().learn_many(frame, LABELS)
    assert len(caught) == 1
    with pytest.warns(VarifoldWarning, match=message):
        varifold.AROWRegressor().learn_many(frame, range(60))
    sklearn = pytest.importorskip("varifold.sklearn")
    with pytest.warns(VarifoldWarning, match=message):
        sklearn.VarifoldClassifier("arow").fit(frame, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sklearn.VarifoldClassifier("arow")
        if library == "pandas":
            model.fit(frame.astype("category"), LABELS)
            varifold.AROW().predict_many(frame)


def test_pairs_of_a_csv_reader():
    rows = csv.DictReader(["p,q,y", *(f"{i}.25,3,{y}" for i, y in enumerate(LABELS))])
    with pytest.warns(VarifoldWarning, match=r"'p' holds numbers as texts, such as '0\.25'.*float"):
        prequential(varifold.AROW(), [({"p": row["p"], "q": row["q"]}, row["y"]) for row in rows])


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"p": f"{i}.25", "y": y}) for i, y in enumerate(LABELS)))
    with pytest.warns(VarifoldWarning, match=r"'p' holds numbers as texts.*--types p=numeric\) reads") as caught:
        list(streams.read(path, target="y").blocks())
    assert len(caught) == 1
    (block,) = streams.read(path, target="y", types={"p": "numeric"}).blocks()
    assert list(block.rows())[3] == {"p": 3.25}
    list(streams.read(path, target="y", types={"p": "category"}).blocks())
    list(streams.read(path, target="y", key="p").blocks())


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{0}", r"'p' holds numbers as texts, such as '0'.*--types p=numeric\) reads"),
        ("{0:05}", r"'p' has a different text in each of its first 200 rows, such as '00000'"),
        ("17723{0:05}", r"'p' has a different text in each of its first 200 rows, such as '1772300000'"),
    ],
)
def test_whole_numbers_in_json_lines(written, message, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"p": written.format(i), "y": i % 2}) for i in range(200)))
    with pytest.warns(VarifoldWarning, match=message) as caught:
        list(streams.read(path, target="y").blocks())
    assert len(caught) == 1
    for kind in ("numeric", "category"):
        list(streams.read(path, target="y", types={"p": kind}).blocks())


def test_json_lines_with_decimal_commas(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"p": f"{i},25", "y": y}) for i, y in enumerate(LABELS)))
    with pytest.warns(VarifoldWarning, match=r"--types p=numeric\) with decimal or thousands"):
        list(streams.read(path, target="y").blocks())
    (block,) = streams.read(path, target="y", types={"p": "numeric"}, decimal=",").blocks()
    assert list(block.rows())[3] == {"p": 3.25}


def test_a_column_is_reported_once():
    pandas, sklearn = pytest.importorskip("pandas"), pytest.importorskip("varifold.sklearn")
    chunks = [pandas.DataFrame({"p": [f"{10 * k + i}.5" for i in range(30)]}) for k in range(3)]
    later = pandas.DataFrame({"p": ["0.5"] * 30, "q": [f"{i}.5" for i in range(30)]})
    labels = [0, 1] * 15
    for learn in (
        varifold.AROW().learn_many,
        varifold.AROW().predict_learn_many,
        varifold.AROWRegressor().learn_many,
        sklearn.VarifoldClassifier("arow").partial_fit,
        sklearn.VarifoldRegressor("arow").partial_fit,
    ):
        with pytest.warns(VarifoldWarning, match="'p' holds numbers as texts"):
            learn(chunks[0], labels)
        for chunk in chunks[1:]:
            learn(chunk, labels)  # a warning would be an error
        with pytest.warns(VarifoldWarning, match="'q' holds numbers as texts"):
            learn(later, labels)
