"""How numbers are written: decimal commas, separated thousands, and columns that can be read in two ways."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from varifold import streams
from varifold.errors import DataError, ParameterError, VarifoldWarning
from varifold.streams.readers._numbers import label_of, parse_number
from varifold.streams.readers.notation import COMMA, COMMA_GROUPS, POINT, POINT_GROUPS, Notation, detect_notations

WRITTEN = {
    "2,34": {"price": "{:.2f}", "swap": True, "groups": ""},
    "9467.00": {"price": "{:.2f}", "swap": False, "groups": ""},
    "9.467,00": {"price": "{:,.2f}", "swap": True, "groups": "."},
    "9,467.00": {"price": "{:,.2f}", "swap": False, "groups": ","},
}


def write(number: float, form: str, swap: bool) -> str:
    text = form.format(number)
    return text.translate(str.maketrans(".,", ",.")) if swap else text


def prices(n: int = 300) -> np.ndarray[Any, Any]:
    return np.round(np.exp(np.random.default_rng(3).normal(6, 2, n)), 2)


def table(path: Path, how: dict[str, Any], separator: str = ";") -> np.ndarray[Any, Any]:
    numbers = prices()
    rows = [
        [write(v, how["price"], how["swap"]), write(v / 7, "{:.3f}", how["swap"]), str(i)]
        for i, v in enumerate(numbers)
    ]
    quote = '"{}"'.format if separator == "," else str
    lines = [separator.join(quote(cell) for cell in row) for row in [["y", "x", "n"], *rows]]
    path.write_text("\n".join(lines) + "\n")
    return numbers


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("how", WRITTEN.values(), ids=WRITTEN)
def test_a_numeric_target_is_read_as_it_is_written(tmp_path: Path, how: dict[str, Any], separator: str) -> None:
    wanted = table(tmp_path / "prices.csv", how, separator)
    stream = streams.read(tmp_path / "prices.csv", target="y")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert stream.target_type == "number"
        (block,) = stream.blocks()
    assert block.targets.tolist() == wanted.tolist()
    features = [x["x"] for x in block.rows()]
    assert features == [float(f"{v / 7:.3f}") for v in wanted]
    messages = [str(w.message) for w in caught if issubclass(w.category, VarifoldWarning)]
    assert len(messages) == bool(how["groups"])
    assert all(f"with {how['groups']!r} between thousands" in text for text in messages)


@pytest.mark.parametrize("how", [WRITTEN["2,34"], WRITTEN["9.467,00"]])
def test_given_separators_apply_to_the_target(tmp_path: Path, how: dict[str, Any]) -> None:
    wanted = table(tmp_path / "prices.csv", how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if how["groups"] else "error")
        (block,) = streams.read(tmp_path / "prices.csv", target="y", decimal=",").blocks()
        (same,) = streams.read(tmp_path / "prices.csv", target="y", decimal=",", thousands=".").blocks()
    assert block.targets.tolist() == same.targets.tolist() == wanted.tolist()


@pytest.mark.parametrize(("thousands", "decimal"), [("'", "."), (" ", ","), (" ", None)])
def test_other_separators_of_thousands_are_given(tmp_path: Path, thousands: str, decimal: str | None) -> None:
    number = f"12{thousands}345{decimal or '.'}5"
    (tmp_path / "data.csv").write_text("x;y\n" + f"{number};{number}\n1;7\n" * 3)
    stream = streams.read(tmp_path / "data.csv", target="y", decimal=decimal, thousands=thousands)
    (block,) = stream.blocks()
    assert [x["x"] for x in block.rows()] == [12345.5, 1.0] * 3
    assert block.y == [12345.5, 7] * 3


@pytest.mark.parametrize(
    ("cells", "notation"),
    [
        (["2,5", "3"], COMMA),
        (["2.5", "3"], POINT),
        (["0,123", "0,456"], COMMA),
        (["1.234", "5.678"], POINT),
        (["1.234.567", "12"], POINT_GROUPS),
        (["1,234,567", "12"], COMMA_GROUPS),
        (["1.234,5", "2,5"], POINT_GROUPS),
        (["1,234.5", "2.5"], COMMA_GROUPS),
        (["1,234", "5,67"], COMMA),
        (["-1.234,50", "+7"], POINT_GROUPS),
        (["a,b", "c.d"], POINT),
        (["2,5", "2.5"], POINT),
        (["29'658.52", "7.5"], Notation(".", "'")),
        (["29’658,52", "7"], Notation(",", "'")),
        (["29'658", "7"], Notation(".", "'")),
        (["76\u202f407,89", "1 000"], Notation(",", " ")),
        (["76\xa0407.89"], Notation(".", " ")),
        (["1 234", "12"], Notation(",", " ")),
        (["it's", "1'000"], POINT),
        (["3 4", "030 123"], POINT),
        ([], POINT),
    ],
)
def test_a_column_shows_its_notation(cells: list[str], notation: Any) -> None:
    assert detect_notations({"a": cells}, None, None, {}, "file")["a"] == notation


@pytest.mark.parametrize(
    ("cells", "others", "notation"),
    [
        (["1,234", "5,678"], ["2,5"], COMMA),
        (["1,234", "5,678"], ["2.5"], COMMA_GROUPS),
        (["1.234", "5.678"], ["9.467,00"], POINT_GROUPS),
        (["1.234", "5.678"], ["2.5"], POINT),
        (["12", "13"], ["2,5"], COMMA),
        (["1'234", "5'678"], ["2,5"], Notation(",", "'")),
        (["1 234", "5 678"], ["2.5"], Notation(".", " ")),
        (["1.234", "5.678"], ["9 467,00"], None),
    ],
)
def test_other_columns_show_it_where_a_column_does_not(cells: list[str], others: list[str], notation: Any) -> None:
    columns = {"a": cells, "b": others}
    if notation is None:
        with pytest.raises(DataError, match="can be read in two ways"):
            detect_notations(columns, None, None, {}, "file")
    else:
        assert detect_notations(columns, None, None, {}, "file")["a"] == notation


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["1,234", "5,678"]}, r"column 'a'.*1,234 is 1.234 or 1,234; give decimal=',' .* or thousands=','"),
        ({"a": ["1.234", "5.678"], "b": ["2,5"]}, r"1.234 is 1.234 or 1,234; give decimal='.' .* or thousands='.'"),
    ],
)
def test_a_column_that_can_be_read_in_two_ways_needs_an_option(columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        detect_notations(columns, None, None, {}, "file")


def test_files_before_show_what_a_file_does_not(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x;y\n1,5;a\n2,25;b\n")
    (tmp_path / "2.csv").write_text("x;y\n1,234;a\n2,345;b\n")
    blocks = streams.read([tmp_path / "1.csv", tmp_path / "2.csv"], target="y").blocks()
    assert [x["x"] for block in blocks for x in block.rows()] == [1.5, 2.25, 1.234, 2.345]


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "number"),
    [
        ("1.234,5", ",", ".", 1234.5),
        ("-1.234.567", ",", ".", -1234567.0),
        ("1234,5", ",", ".", 1234.5),
        ("1 234", ".", " ", 1234.0),
        ("-1\u202f234\xa0567,5", ",", " ", -1234567.5),
        ("1\u2009234", ".", " ", 1234.0),
        ("12’345.5", ".", "'", 12345.5),
        ("1\u202f23", ".", " ", None),
        ("1\u202e234", ".", " ", None),
        ("1\xa1234", ".", " ", None),
        ("1’", ".", "'", None),
        ("1\u202f234", ".", "'", None),
        ("1.23", ",", ".", None),
        ("1.2345", ",", ".", None),
        ("1234.567", ",", ".", None),
        (".234", ",", ".", None),
        ("1..234", ",", ".", None),
        ("1,5.234", ",", ".", None),
        ("1.234e2", ",", ".", 123400.0),
        ("+", ",", ".", None),
        ("", ",", ".", None),
        ("1." + "234." * 30 + "567", ",", ".", None),
    ],
)
def test_groups_have_three_digits(text: str, decimal: str, thousands: str, number: float | None) -> None:
    assert parse_number(text, decimal, thousands) == number
    assert label_of(text.encode(), decimal, thousands) == (text if number is None else number)


@pytest.mark.parametrize("given", [{"thousands": "_"}, {"thousands": ",", "decimal": ","}, {"thousands": ""}])
def test_wrong_separators_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="thousands must be one of"):
        streams.read("data.csv", **given)


@pytest.mark.parametrize(
    ("mark", "decimal", "shown"),
    [
        ("'", ".", r"with \"'\" between"),
        ("’", ".", r"with \"'\" between"),
        ("\xa0", ",", "with ' ' between"),
        ("\u202f", ",", "' '"),
    ],
)
def test_apostrophes_and_spaces_between_thousands_are_detected(
    tmp_path: Path, mark: str, decimal: str, shown: str
) -> None:
    texts = [f"{v:,.2f}".replace(".", "#").replace(",", mark).replace("#", decimal) for v in prices()]
    path = tmp_path / "prices.csv"
    path.write_text("y;x;weight in t\n" + "".join(f"{text};{text};{text} t\n" for text in texts), encoding="utf-8")
    with pytest.warns(VarifoldWarning, match=shown), pytest.warns(VarifoldWarning, match="without its unit 't'"):
        (block,) = streams.read(path, target="y", types={"weight in t": "numeric"}).blocks()
    assert block.targets.tolist() == prices().tolist()
    assert [list(x.values()) for x in block.rows()] == [[v, v] for v in prices()]


def texts() -> list[str]:
    return [f"{v:.2f}".replace(".", ",") for v in prices()]


def sources(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame({"x": range(300), "y": texts()})
    frame.to_parquet(folder / "data.parquet")
    frame.to_json(folder / "data.jsonl", orient="records", lines=True)
    dicts = frame.to_dict("records")
    return {"frame": frame, "parquet": folder / "data.parquet", "jsonl": folder / "data.jsonl", "dicts": dicts}


@pytest.mark.parametrize("kind", ["frame", "parquet", "jsonl", "dicts"])
def test_labels_most_of_which_differ_are_rejected_before_anything_is_learned(kind: str, tmp_path: Path) -> None:
    source = sources(tmp_path)[kind]
    stream = streams.read(source, target="y")
    for _ in range(2):
        with pytest.raises(DataError, match=r"'y' has 300 different labels among the first 300 rows, such as '"):
            list(stream.blocks())
    blocks = list(streams.read(source, target="y", target_type="class").blocks())
    assert sum(map(len, blocks)) == 300
    (block,) = streams.read(source, target="y", decimal=",").blocks()
    assert block.targets.tolist() == prices().tolist()


def test_many_labels_that_come_again_are_classes() -> None:
    rows = [{"x": i, "y": f"label {i % 60}"} for i in range(600)]
    (block,) = streams.read(rows, target="y").blocks()
    assert len(block.labels.values) == 60


def test_a_column_is_read_as_in_an_earlier_stream(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("price;size\n1.234;1,5\n2.345;2,5\n")
    stream = streams.read(path, notations={"price": [",", "."]})
    assert [x for x, _ in stream] == [{"price": 1234.0, "size": 1.5}, {"price": 2345.0, "size": 2.5}]
    assert stream.notations == {"price": POINT_GROUPS, "size": COMMA}


def test_points_that_may_separate_thousands_are_reported_in_a_file_with_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;n;y\n" + "".join(f"{1 + i % 9}.{100 + i};{i};{'ab'[i % 2]}\n" for i in range(100)))
    with pytest.warns(VarifoldWarning, match=r"'x' is read with a decimal point: 1\.100 is 1\.1;.*--thousands \."):
        (block,) = streams.read(path, target="y").blocks()
    assert next(iter(block.rows()))["x"] == 1.1
    (block,) = streams.read(path, target="y", thousands=".").blocks()
    assert next(iter(block.rows()))["x"] == 1100.0
    (block,) = streams.read(path, target="y", decimal=".").blocks()
    assert next(iter(block.rows()))["x"] == 1.1
    path.write_text(path.read_text().replace("99;b", "99.5;b"))  # a decimal point elsewhere decides
    list(streams.read(path, target="y").blocks())
    path.write_text(path.read_text().replace("99.5;b", "99;b").replace(";", ","))
    list(streams.read(path, target="y").blocks())


def test_the_example_of_a_warning_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    grouped = ["n.a.", *(f"1.{i:03d},5" for i in range(30))]
    pointed = [*map(str, range(100)), "n.a.", *(f"1.{i:03d}" for i in range(100))]
    for cells, message in [
        (grouped, r"'x' is read with '\.' between thousands: 1\.000,5 is 1000\.5"),
        (pointed, r"'x' is read with a decimal point: 1\.000 is 1;"),
    ]:
        path.write_text("x;y\n" + "".join(f"{x};{'ab'[i % 2]}\n" for i, x in enumerate(cells)))
        with pytest.warns(VarifoldWarning, match=message), pytest.warns(VarifoldWarning, match=r"1 text such as 'n\.a"):
            list(streams.read(path, target="y").blocks())


@pytest.mark.parametrize("mark", [" ", "\u202f", ",", "."], ids=["space", "narrow", "comma", "point"])
def test_numbers_too_long_to_be_read_with_groups_are_texts(mark: str, tmp_path: Path) -> None:
    """A number with groups has at most 64 bytes; the notation is chosen from those that are read."""
    long, short = f"1{(mark + '000') * 30}", f"1{mark}234{mark}567"
    for cells in ([long] * 20, [long] + [short] * 19):
        path = tmp_path / "long.csv"
        path.write_text("y;x\n" + "".join(f"{i % 2};{cell}\n" for i, cell in enumerate(cells)), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (block,) = streams.read(path, target="y", delimiter=";").blocks()
        found = [next(iter(x.items())) for x in block.rows()]
        assert found[0] == ("x", long)
        assert found[1:] == [("x", long)] * 19 if cells[1] == long else [("x", 1_234_567.0)] * 19
