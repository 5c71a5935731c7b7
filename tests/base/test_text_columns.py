"""Columns of texts that are no categories: dates, sentences and identifiers in frames and lists of dicts."""

import warnings

import pytest

import varifold
from varifold.errors import VarifoldWarning
from varifold.evaluate import prequential

LABELS = ["up", "down"] * 60
DATES = [f"{1 + i % 28:02}.{1 + i // 28:02}.2025" for i in range(120)]
SENTENCES = [f"the box came {i % 70} days late" for i in range(120)]
SERIALS = [f"SN-{i:04}" for i in range(120)]
TOWNS = ["Ulm", "Bonn"] * 60
COLUMNS = [
    (DATES, r"'x' holds dates as texts, such as '01\.01\.2025', and each is read as a separate category.*month"),
    (SENTENCES, r"'x' holds texts of several words, such as 'the box came 0 days late'.*CountVectorizer"),
    (SERIALS, r"'x' has a different text in each of its first 120 rows, such as 'SN-0000'.*leave the column out"),
]


@pytest.mark.parametrize(("column", "message"), COLUMNS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames(library, column, message):
    frames, sklearn = pytest.importorskip(library), pytest.importorskip("varifold.sklearn")
    frame = frames.DataFrame({"x": column, "town": TOWNS})
    to_keep = message + ".*convert the column to categories"
    for learn in (varifold.AROW().learn_many, sklearn.VarifoldClassifier("arow").fit):
        with pytest.warns(VarifoldWarning, match=to_keep) as caught:
            learn(frame, LABELS)
        assert len(caught) == 1
    for learn in (varifold.AutoDetector().score_learn_many, sklearn.VarifoldDetector("autodetector").fit):
        with pytest.warns(VarifoldWarning, match=to_keep):
            learn(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if library == "pandas":
            varifold.AROW().learn_many(frame.astype("category"), LABELS)


@pytest.mark.parametrize(("column", "message"), COLUMNS)
def test_columns_of_dicts(column, message):
    rows = [{"x": text, "town": town} for text, town in zip(column, TOWNS, strict=True)]
    model, keyed = varifold.AROW(), varifold.PerKey(varifold.AROW(), key="town")
    for learn in (model.learn_many, keyed.learn_many):
        with pytest.warns(VarifoldWarning, match=message) as caught:
            learn(rows, LABELS)
        assert len(caught) == 1
        learn(rows, LABELS)  # a warning would be an error
    with pytest.warns(VarifoldWarning, match=message):
        prequential(varifold.AROW(), zip(rows, LABELS, strict=True))


def test_numbers_of_a_csv_reader_in_a_list():
    rows = [{"p": f"{i}.25", "q": 1.0} for i in range(60)]
    with pytest.warns(VarifoldWarning, match=r"'p' holds numbers as texts, such as '0\.25'.*float"):
        varifold.AROW().learn_many(rows, LABELS[:60])


def test_a_column_of_dicts_is_reported_once_by_partial_fit():
    sklearn = pytest.importorskip("varifold.sklearn")
    rows = [{"x": date, "town": town} for date, town in zip(DATES, TOWNS, strict=True)]
    for model in ("arow", varifold.PerKey(varifold.AROW(), key="town")):
        classifier = sklearn.VarifoldClassifier(model)
        with pytest.warns(VarifoldWarning, match="'x' holds dates as texts"):
            classifier.partial_fit(rows, LABELS)
        classifier.partial_fit(rows, LABELS)


@pytest.mark.parametrize("texts", [TOWNS, SERIALS[:99], [*DATES[:100], *TOWNS[:20]], ["a few short words"] * 120])
def test_categories(texts):
    varifold.AROW().learn_many([{"x": text} for text in texts], LABELS[: len(texts)])
