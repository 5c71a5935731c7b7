"""Columns of numbers and texts are reported, not silently turned into many categories."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from varifold.errors import VarifoldWarning
from varifold.streams import read


def written(folder: Path, cells: list[Any]) -> Path:
    place = folder / "rows.csv"
    place.write_text("age,b,y\n" + "".join(f"{cell},1,{i % 2}\n" for i, cell in enumerate(cells)))
    return place


def warnings_of(source: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(read(source, target="y", **options).blocks())
    return [str(w.message) for w in caught if issubclass(w.category, VarifoldWarning)]


def test_a_few_texts_among_numbers(tmp_path: Path) -> None:
    file = written(tmp_path, [*range(60), "unknown", "n.a."])
    (message,) = warnings_of(file)
    assert "the numeric column 'age' also held 2 texts such as 'unknown', 'n.a.'" in message
    assert "--absent" in message
    assert warnings_of(file, types={"age": "numeric"}) == []
    assert warnings_of(file, absent=["", "unknown", "n.a."]) == []


def test_many_texts_make_a_column_a_category_and_that_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path, [*range(31), *["unknown"] * 20])
    (message,) = warnings_of(file)
    assert "column 'age' is read as a category, its numbers as well: 20 of its first 51 cells" in message
    assert "--types age=numeric" in message
    assert warnings_of(file, types={"age": "category"}) == []
    assert warnings_of(file, types={"age": "numeric"}) == []
    assert warnings_of(written(tmp_path, ["a", "b", "c", 4])) == []


def test_columns_that_are_empty_at_first_are_reported_once(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    cells = [",,1" if i < 2000 else f"{'ab'[i % 2]},x{i % 3},1" for i in range(3000)]
    place.write_text("\n".join(["site,kind,y", *(f"{row}{i % 2}" for i, row in enumerate(cells))]))
    (message,) = warnings_of(place)
    assert message.startswith("columns that were empty in the first rows hold texts such as ")
    assert "'kind' (3 texts), 'site' (2 texts); each is a separate category" in message
    assert warnings_of(place, types={"site": "category", "kind": "category"}) == []


def test_numbers_and_texts_in_json(tmp_path: Path) -> None:
    rows = [{"age": 3, "y": 0}, {"age": "unknown", "y": 1}, {"age": 4.5, "y": 0}]
    (message,) = warnings_of(rows)
    assert "the numeric column 'age' also held 1 text such as 'unknown'" in message
    assert warnings_of([{"age": "3", "y": 0}, {"age": "x", "y": 1}]) == []


def test_a_stream_that_is_read_twice_reports_it_once(tmp_path: Path) -> None:
    stream = read(written(tmp_path, [*range(60), "unknown"]), target="y")
    with pytest.warns(VarifoldWarning, match="unknown"):
        list(stream.blocks())
    list(stream.blocks())
