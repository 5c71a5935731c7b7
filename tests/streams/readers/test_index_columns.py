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
    assert "(--types w=numeric) reads the numbers without the unit" in message


@pytest.mark.parametrize("source", ["csv", "jsonl", "frame"])
def test_columns_with_units_are_reported_together(tmp_path, source):
    weights, shares = ([f"{i} {unit}" for i in range(9)] for unit in ("kg", "%"))
    data = pd.DataFrame({"w": weights, "p": shares, "y": ["a", "b", "a"] * 3})
    data.to_csv(tmp_path / "a.csv", index=False)
    data.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    _, (message,) = read(data if source == "frame" else tmp_path / f"a.{source}")
    assert "2 columns hold numbers with units: 'w' ('0 kg'), 'p' ('0 %'); " in message
    assert "types={'w': 'numeric', 'p': 'numeric'} (--types w=numeric,p=numeric) reads the numbers" in message


@pytest.mark.parametrize(
    ("cell", "unit"), [("{} kg", "kg"), ("{}%", "%"), ("{},5 %", "%"), ("€ {}", "€"), ("-{} m/s²", "m/s²")]
)
@pytest.mark.parametrize("source", ["file", "frame"])
def test_the_type_numeric_reads_numbers_without_their_unit(tmp_path, cell, unit, source):
    data = pd.DataFrame({"w": [cell.format(i) for i in range(10, 20)], "y": ["a", "b"] * 5})
    path = tmp_path / "a.csv"
    data.to_csv(path, index=False, sep=";")
    given = {"decimal": ","} if source == "frame" and "," in cell else {}
    rows, (message,) = read([path, path] if source == "file" else data, types={"w": "numeric"}, **given)
    numbers = [(-i if "-" in cell else i) + (0.5 if "," in cell else 0.0) for i in range(10, 20)]
    assert [row["w"] for row in rows] == numbers * (2 if source == "file" else 1)
    assert message == f"column 'w' is read without its unit {unit!r}, such as {cell.format(10)!r}"


def test_whole_numbers_with_a_unit_say_nothing_about_other_columns(tmp_path):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("w;a;y\n" + "".join(f"{i} %;1.{i}00,5;u\n" for i in range(1, 10)))
    second.write_text("w;b;y\n" + "".join(f"{i} %;1.{i}00;v\n" for i in range(1, 10)))
    rows, _ = read([first, second], types={"w": "numeric"})
    assert (rows[0], rows[-1]) == ({"w": 1.0, "a": 1100.5}, {"w": 9.0, "b": 1900.0})


def test_a_column_has_one_unit(tmp_path):
    first, second, third = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    first.write_text("w,y\n" + "".join(f"{i} kg,a\n" for i in range(20)))
    second.write_text("w,y\n" + "".join(f"{i} g,b\n" for i in range(20)))
    third.write_text("w,y\n1 kg,a\n2,b\n" + "".join(f"{i} kg,a\n" for i in range(20)) + "3 g,b\nn.a.,b\n")
    with pytest.raises(DataError, match=r"b\.csv: column 'w' has the unit 'g', and had 'kg' before"):
        read([first, second], types={"w": "numeric"})
    with pytest.raises(DataError, match=r"c\.csv, line 24, column 'w': '3 g' has another unit than 'kg'"):
        read(third, types={"w": "numeric"})
    rows, _ = read(third, types={"w": "numeric"}, on_error="skip")
    assert rows[:2] == [{"w": 1.0}, {"w": 2.0}]
    assert rows[-1] == {"w": "n.a."}


@pytest.mark.parametrize("cells", [["1 kg", "2 g", "3 kg", "4 g", "5 kg"], ["1a"] * 5, ["a1", "a2", "a3", "a4", "a5"]])
def test_other_categories_are_not_reported(tmp_path, cells):
    path = tmp_path / "a.csv"
    pd.DataFrame({"w": cells, "y": list("ababa")}).to_csv(path, index=False)
    assert read(path)[1] == []


def test_a_target_with_a_unit_is_named(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"a": range(100), "y": [f"{i} kg" for i in range(100)]}).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"\(--types y=numeric\) reads numbers without the unit 'kg'"):
        read(path)


@pytest.mark.parametrize("source", ["file", "frame"])
@pytest.mark.parametrize("target_type", ["number", None])
def test_a_target_is_read_without_its_unit(tmp_path, source, target_type):
    data = pd.DataFrame({"a": range(100), "y": [f"{i * i / 2} kg" for i in range(99)] + ["7"]})
    path = tmp_path / "a.csv"
    data.to_csv(path, index=False)
    options: dict[str, Any] = {"target": "y", "types": {"y": "numeric"}, "target_type": target_type}
    stream = streams.read(path if source == "file" else data, **options)
    with pytest.warns(VarifoldWarning, match="'y' is read without its unit 'kg'"):
        (block,) = stream.blocks()
    assert block.targets.tolist() == [i * i / 2 for i in range(99)] + [7.0]
    data.loc[50, "y"] = "3 g"
    data.to_csv(path, index=False)
    with pytest.raises(DataError, match="unit"), pytest.warns(VarifoldWarning):
        list(streams.read(path if source == "file" else data, **options).blocks())


def test_the_warnings_are_of_the_library(tmp_path):
    path = tmp_path / "a.csv"
    frame().to_csv(path)
    with pytest.warns(VarifoldWarning, match="has no name"):
        list(streams.read(path, target="y").blocks())
