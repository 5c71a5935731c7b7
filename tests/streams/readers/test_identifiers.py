"""Columns that identify rows: texts, each of which would be a feature of one row, and numbers that count the rows."""

import json
import warnings

import pandas as pd
import pytest

from varifold import streams
from varifold.errors import VarifoldWarning


def rows_of(kind, texts, path):
    if kind == "csv":
        path.write_text("serial,a,y\n" + "".join(f"{text},{i % 7},{'pq'[i % 2]}\n" for i, text in enumerate(texts)))
        return path
    rows = [{"serial": text, "a": i % 7, "y": "pq"[i % 2]} for i, text in enumerate(texts)]
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
def test_numbers_that_count_the_rows_are_reported(kind, tmp_path):
    path = rows_of(kind, [1_700_000_000 + 60 * i for i in range(300)], tmp_path / f"a.{kind}")
    message = r"'serial' holds a larger whole number in each of its first 300 rows \(1700000000, .*--time serial"
    with pytest.warns(VarifoldWarning, match=message) as told:
        list(streams.read(path, target="y", block_rows=120).blocks())
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"time": "serial"}, {"ignore": ["serial"]}, {"types": {"serial": "numeric"}}, {"id": "serial"}):
            list(streams.read(path, target="y", **options).blocks())


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_numbers_that_rise_otherwise_are_not_reported(kind, tmp_path):
    for numbers in (
        [2 * i for i in range(99)],  # too few
        [i // 2 for i in range(300)],
        [-i for i in range(300)],
        [i + 0.5 for i in range(300)],
        [*range(299), 0],
    ):
        list(streams.read(rows_of(kind, numbers, tmp_path / f"a.{kind}"), target="y").blocks())
