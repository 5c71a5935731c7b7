"""The index that pandas and R write without a name is left out and reported; numbers with units are reported."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest

from varifold import streams
from varifold.errors import DataError, VarifoldWarning


def read(source: Any, **options: Any) -> tuple[list[Any], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        blocks = list(streams.read(source, target="y", **options).blocks())
    return [x for block in blocks for x in block.rows()], [str(w.message) for w in caught]


def frame(rows: int = 20) -> pd.DataFrame:
    return pd.DataFrame({"a": [i / 2 for i in range(rows)], "y": ["no", "yes"] * (rows // 2)})


def test_the_index_of_pandas_is_left_out(tmp_path):
    path = tmp_path / "a.csv"
    frame().sample(frac=1.0, random_state=1).to_csv(path)
    rows, (message,) = read([path, path])
    assert set().union(*rows) == {"a"}
    assert f"the first column of {path} has no name and a different value in each row" in message
    assert "--types column1=category" in message


@pytest.mark.parametrize(
    ("options", "name"), [({"types": {"column1": "numeric"}}, "column1"), ({"id": "column1"}, None)]
)
def test_an_option_that_names_it_keeps_it(tmp_path, options, name):
    path = tmp_path / "a.csv"
    frame().to_csv(path)
    rows, messages = read(path, **options)
    assert messages == []
    assert set().union(*rows) == {"a"} | ({name} - {None})


def test_an_index_that_was_read_and_written_again_is_left_out(tmp_path):
    path = tmp_path / "a.csv"
    frame().to_csv(path)
    again = pd.read_csv(path)
    rows, (message,) = read(again)
    assert set().union(*rows) == {"a"}
    assert "the data frame" in message
    again.to_csv(path, index=False)
    rows, _ = read(path)
    assert set().union(*rows) == {"a"}


def test_row_names_of_r_are_left_out(tmp_path):
    path = tmp_path / "cars.csv"
    path.write_text('"mpg","y"\n"Mazda RX4",21.5,"a"\n"Datsun",22.8,"b"\n')
    rows, (message,) = read(path)
    assert rows == [{"mpg": 21.5}, {"mpg": 22.8}]
    assert "such as 'Mazda RX4'" in message


def test_rows_that_end_with_a_separator_are_not_row_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,u,\n2,v,\n")
    with pytest.raises(DataError, match="line 2: 3 cells where the header has 2"):
        read(path)


def test_measurements_without_a_name_are_kept(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",y\n0.5,u\n1.25,v\n0.75,u\n")
    assert read(path) == ([{"column1": 0.5}, {"column1": 1.25}, {"column1": 0.75}], [])
    path.write_text(",y\n1,u\n1,v\n2,u\n")
    assert read(path) == ([{"column1": 1.0}, {"column1": 1.0}, {"column1": 2.0}], [])


@pytest.mark.parametrize(
    ("cell", "unit"), [("{} kg", "kg"), ("{}%", "%"), ("{},5 %", "%"), ("€ {}", "€"), ("-{} m/s²", "m/s²")]
)
@pytest.mark.parametrize("source", ["file", "frame"])
def test_numbers_with_a_unit_are_reported_once(tmp_path, cell, unit, source):
    data = pd.DataFrame({"w": [cell.format(i) for i in range(10, 20)], "y": ["a", "b"] * 5})
    path = tmp_path / "a.csv"
    data.to_csv(path, index=False, sep=";")
    _, (message,) = read([path, path] if source == "file" else data)
    assert f"column 'w' holds numbers with the unit {unit!r}, such as {cell.format(10)!r}" in message
    assert read(path, types={"w": "category"})[1] == []
    if source == "file":
        _, (message,) = read(path, types={"w": "numeric"})
        assert "with the unit" in message, "a type does not turn them into numbers, and must not hide that"


@pytest.mark.parametrize("cells", [["1 kg", "2 g", "3 kg", "4 g", "5 kg"], ["1a"] * 5, ["a1", "a2", "a3", "a4", "a5"]])
def test_other_categories_are_not_reported(tmp_path, cells):
    path = tmp_path / "a.csv"
    pd.DataFrame({"w": cells, "y": list("ababa")}).to_csv(path, index=False)
    assert read(path)[1] == []


def test_a_target_with_a_unit_is_named(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"a": range(100), "y": [f"{i} kg" for i in range(100)]}).to_csv(path, index=False)
    with pytest.raises(DataError, match="to predict numbers, write them without the unit 'kg'"):
        read(path)


def test_the_warnings_are_of_the_library(tmp_path):
    path = tmp_path / "a.csv"
    frame().to_csv(path)
    with pytest.warns(VarifoldWarning, match="has no name"):
        list(streams.read(path, target="y").blocks())
