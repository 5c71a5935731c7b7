"""Columns that identify rows: texts, each of which would be a feature of one row, and numbers that count the rows."""

import json
import re
import warnings

import pandas as pd
import pytest

from varifold import streams
from varifold.errors import DataError, VarifoldWarning


def rows_of(kind, values, path, name="serial"):
    if kind == "csv":
        path.write_text(f"{name},a,y\n" + "".join(f"{x},{i % 7},{'pq'[i % 2]}\n" for i, x in enumerate(values)))
        return path
    rows = [{name: value, "a": i % 7, "y": "pq"[i % 2]} for i, value in enumerate(values)]
    if kind == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_different_text_in_each_row_is_reported(kind, tmp_path):
    path = rows_of(kind, [f"x{i}-f" for i in range(300)], tmp_path / f"a.{kind}")
    message = r"'serial' has a different text in each of its first 300 rows, such as 'x0-f'.*--ignore serial"
    with pytest.warns(VarifoldWarning, match=message):
        list(streams.read(path, target="y").blocks())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"id": "serial"}, {"ignore": ["serial"]}, {"types": {"serial": "category"}}, {"key": "serial"}):
            list(streams.read(path, target="y", **options).blocks())


def test_few_rows_and_repeated_texts_are_not_reported(tmp_path):
    for texts in ([f"x{i}-f" for i in range(99)], [f"x{i % 299}-f" for i in range(300)]):
        list(streams.read(rows_of("csv", texts, tmp_path / "a.csv"), target="y").blocks())


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("start", "name", "what"),
    [
        (1_700_000_000, "heat", "reads like a Unix time.* --time heat"),
        (1_700_000_000_000, "heat", "reads like a Unix time.* --time heat"),
        (1, "order_id", "seems to number the rows.* --id order_id"),
    ],
)
def test_times_and_numbers_of_rows_are_reported(start, name, what, kind, tmp_path):
    path = rows_of(kind, [start + 60 * i for i in range(300)], tmp_path / f"a.{kind}", name)
    with pytest.warns(VarifoldWarning) as warned:
        list(streams.read(path, target="y", block_rows=120).blocks())
    assert len(warned) == 1
    assert re.search(f"column '{name}' {what}".replace(" --", r".*\(--"), str(warned[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"time": name}, {"ignore": [name]}, {"types": {name: "numeric"}}, {"id": name}):
            list(streams.read(path, target="y", **options).blocks())


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["heat", "id"])
def test_other_numbers_are_not_reported(name, kind, tmp_path):
    for numbers in (
        [2 * i for i in range(99)],  # too few
        [i // 2 for i in range(300)],
        [-i for i in range(300)],
        [i + 0.5 for i in range(300)],
        [1_700_000_000 + i % 299 for i in range(300)],
        *([list(range(300))] if name == "heat" else []),
    ):
        list(streams.read(rows_of(kind, numbers, tmp_path / f"a.{kind}", name), target="y").blocks())


def test_codes_with_leading_zeros_are_reported(tmp_path):
    path = tmp_path / "a.csv"
    codes = ["50667", "01067", "80331", "04109"]
    path.write_text("plz;x;y\n" + "".join(f"{codes[i % 4]};{i}.5;{i % 2}\n" for i in range(60)))
    message = (
        r"'plz' is read as numbers, without leading zeros, such as those of '01067', '04109'.*--types plz=category"
    )
    with pytest.warns(VarifoldWarning, match=message):
        rows = list(streams.read(path, target="y"))
    assert rows[0][0] == {"plz": 50667.0, "x": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("category", "numeric"):
            list(streams.read(path, target="y", types={"plz": kind}))
        list(streams.read(path, target="y", ignore=["plz"]))


@pytest.mark.parametrize("cells", [["0", "7", "12"], ["07", "08", "12"], ["001.5", "2.5", "7"], ["-001", "004", "5"]])
def test_other_zeros_are_not_reported(cells, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "".join(f"{cells[i % 3]},{i % 2}\n" for i in range(60)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(streams.read(path, target="y"))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_sentences_are_words_and_no_identifiers(kind, tmp_path):
    path = rows_of(kind, [f"the pump {i} is very loud today" for i in range(300)], tmp_path / f"a.{kind}", "comment")
    stream = streams.read(path, target="y")
    list(stream.blocks())
    assert stream.columns["comment"].type == "text"


def test_numbers_that_are_too_large_are_data_errors(tmp_path):
    path = rows_of("jsonl", [10**400 + i for i in range(300)], tmp_path / "a.jsonl", "id")
    with pytest.raises(DataError, match="too large for a float"):
        list(streams.read(path, target="y").blocks())
