"""Dates become features when asked for, and are rejected with a hint otherwise."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import varifold
from varifold.base.clock import looks_like_time, parse_time, shown_time
from varifold.cli import main
from varifold.errors import DataError, FeatureValueError, ParameterError
from varifold.streams import read
from varifold.streams.readers._numbers import parse_number
from varifold.streams.readers.context import inferred_type
from varifold.streams.readers.dates import Dates

PARTS = {"made": ["hour", "weekday", "month", "day", "year", "elapsed", "age"], "when": ["hour"]}
ROWS = [
    {"made": "2026-03-04T12:30:00", "when": "2026-03-06T12:30:00", "a": 1.0, "y": "p"},
    {"made": "2026-03-08", "when": None, "a": None, "y": "q"},
    {"made": None, "when": "2026-03-08", "a": 2.0, "y": "p"},
]
EXPECTED = [
    {
        "made:hour": 12.5,
        "made:weekday": "Wed",
        "made:month": "Mar",
        "made:day": 4.0,
        "made:year": 2026.0,
        "made:elapsed": 20516.520833333332,
        "made:age": 2.0,
        "when:hour": 12.5,
        "a": 1.0,
    },
    {
        "made:hour": 0.0,
        "made:weekday": "Sun",
        "made:month": "Mar",
        "made:day": 8.0,
        "made:year": 2026.0,
        "made:elapsed": 20520.0,
    },
    {"when:hour": 0.0, "a": 2.0},
]


def csv_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    place = folder / "rows.csv"
    pd.DataFrame(rows).to_csv(place, index=False)
    return place


def jsonl_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    place = folder / "rows.jsonl"
    place.write_text("\n".join(map(json.dumps, rows)))
    return place


def parquet_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    place = folder / "rows.parquet"
    made = [None if row["made"] is None else dt.datetime.fromisoformat(row["made"]) for row in rows]
    pl.DataFrame(rows).with_columns(pl.Series("made", made)).write_parquet(place)
    return place


SOURCES: dict[str, Any] = {
    "csv": csv_of,
    "jsonl": jsonl_of,
    "parquet": parquet_of,
    "dicts": lambda _, rows: rows,
    "pandas": lambda _, rows: pd.DataFrame(rows).assign(
        made=pd.to_datetime([r["made"] for r in rows], format="ISO8601")
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_reader_makes_the_same_features_of_dates(kind: str, tmp_path: Path) -> None:
    stream = read(SOURCES[kind](tmp_path, ROWS), target="y", time="when", dates=PARTS)
    (batch,) = stream.batches()
    found = [{k: v for k, v in row.items() if v == v} for row in batch.block.rows()]
    assert found == EXPECTED
    assert [t if isinstance(t, str) and t else None for t in batch.times or []] == [r["when"] for r in ROWS]
    assert batch.block.y == ["p", "q", "p"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "dicts", "parquet"])
def test_dates_without_an_option_are_rejected_with_what_to_do(kind: str, tmp_path: Path) -> None:
    rows = [{"made": "2026-03-04", "a": 1.0, "y": i % 2} for i in range(20)]
    source = SOURCES[kind](tmp_path, rows)
    with pytest.raises(
        DataError, match=r"column 'made' holds dates such as '2026-03-04( 00:00:00)?'.*--dates made=month\+weekday"
    ):
        list(read(source, target="y").blocks())
    for options in ({"dates": {"made": ["day"]}}, {"time": "made"}, {"ignore": ["made"]}):
        (block,) = read(source, target="y", **options).blocks()
        assert "made=2026-03-04" not in next(iter(block.rows()))
    (block,) = read(source, target="y", types={"made": "category"}).blocks()
    assert str(next(iter(block.rows()))["made"]).startswith("2026-03-04")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "dicts", "parquet"])
@pytest.mark.parametrize(("hours", "advice"), [(range(0, 24), "hour"), ([0] * 20, "month")])
def test_the_hour_is_proposed_if_any_time_is_not_midnight(
    kind: str, hours: Sequence[int], advice: str, tmp_path: Path
) -> None:
    """Hourly files usually begin at midnight."""
    rows = [{"made": f"2026-03-04T{hour:02}:00:00", "a": 1.0, "y": i % 2} for i, hour in enumerate(hours)]
    with pytest.raises(DataError, match=rf"such as '2026-03-04[T ]00:00:00'.*--dates made={advice}\+weekday"):
        list(read(SOURCES[kind](tmp_path, rows), target="y").blocks())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cell_that_is_no_date_is_a_row_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    rows = [{"made": "2026-03-04", "y": 0}, {"made": "soon", "y": 1}, {"made": "", "y": 1}]
    source = SOURCES[kind](tmp_path, rows)
    line = {"csv": 3, "jsonl": 2}[kind]
    with pytest.raises(DataError, match=rf"line {line}.*'made'.*'soon' is not a point in time"):
        list(read(source, target="y", dates={"made": ["day"]}).blocks())
    stream = read(source, target="y", dates={"made": ["day"]}, on_error="skip")
    (block,) = stream.blocks()
    assert (len(block), stream.skipped) == (2, 1)


def test_wrong_options_are_rejected() -> None:
    for dates, message in (
        ({"made": "hour"}, "must be a list"),
        ({"made": []}, "must be a list"),
        ({"made": ["hours"]}, "hour"),
        ({"made": ["age"]}, "--time COL"),
        (["made"], "must be a dict"),
    ):
        with pytest.raises(ParameterError, match=message):
            read(ROWS, target="y", dates=dates)
    with pytest.raises(ParameterError, match="--time COL"):
        read(ROWS, target="y", time="made", dates={"made": ["age"]})
    with pytest.warns(varifold.errors.VarifoldWarning, match="'sent' that dates names"):
        list(read(ROWS, target="y", time="when", dates=PARTS | {"sent": ["day"]}).blocks())


def test_a_date_given_to_a_learner_is_rejected_with_what_to_do() -> None:
    for value in (dt.datetime(2026, 3, 4), pd.Timestamp("2026-03-04"), dt.date(2026, 3, 4), dt.timedelta(1)):
        with pytest.raises(FeatureValueError, match=r"'made'.*dates=\{'made': \['hour', 'weekday'\]\}"):
            varifold.AROW().learn_one({"made": value}, 1)
    with pytest.raises(FeatureValueError, match="made"):
        varifold.AROW().learn_one({"made": np.datetime64("2026-03-04")}, 1)


def test_the_command_remembers_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"made": f"2026-03-{1 + i % 28:02}", "y": "late" if i % 7 > 4 else "ok"} for i in range(200)]
    file, model, out = csv_of(tmp_path, rows), tmp_path / "m", tmp_path / "out.csv"
    words = [str(file), "--target", "y", "--model", "arow"]
    assert main(["run", *words]) == 1
    assert "--dates made=month+weekday" in capsys.readouterr().err
    assert main(["run", *words, "--dates", "made=weekday+day", "--save", str(model), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == 8
    assert varifold.load(model).reading["dates"] == {"made": ["weekday", "day"]}
    assert main(["predict", str(model), str(file), "--out", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 201
    assert main(["run", *words, "--dates", "made"]) == 2
    assert "COL=hour+weekday" in capsys.readouterr().err
    assert main(["data", "show", str(file), "--target", "y", "--dates", "made=day"]) == 0


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026/3/4", dt.datetime(2026, 3, 4)),
        ("4.3.2026", dt.datetime(2026, 3, 4)),
        ("31/03/2026", dt.datetime(2026, 3, 31)),
        ("03/31/2026 7:30", dt.datetime(2026, 3, 31, 7, 30)),
        ("03/03/2026", dt.datetime(2026, 3, 3)),
    ],
)
def test_dates_with_slashes_or_dots_are_dates(text: str, meant: dt.datetime, tmp_path: Path) -> None:
    assert parse_time(text) == meant
    file = csv_of(tmp_path, [{"made": text, "a": 1.0, "y": "p"}])
    with pytest.raises(DataError, match=r"column 'made' holds dates such as"):
        list(read(file, target="y"))
    ((x, _),) = read(file, target="y", dates={"made": ["day"]})
    assert x == {"made:day": float(meant.day), "a": 1.0}


def test_a_date_with_ambiguous_day_and_month_is_rejected(tmp_path: Path) -> None:
    file = csv_of(tmp_path, [{"made": "03/04/2026", "a": 1.0, "y": "p"}])
    with pytest.raises(
        DataError, match=r"line 2, column 'made'.*day 3 of month 4, or day 4 of month 3; state which, date_order="
    ):
        list(read(file, target="y", dates={"made": ["day"]}))
    for order, day in (("dmy", 3.0), ("mdy", 4.0)):
        ((x, _),) = read(file, target="y", dates={"made": ["day"]}, date_order=order)
        assert x["made:day"] == day
    wrong = csv_of(tmp_path, [{"made": "03/14/2026", "a": 1.0, "y": "p"}])
    with pytest.raises(DataError, match=r"line 2, column 'made'.*'03/14/2026' is not a date in the order dmy"):
        list(read(wrong, target="y", dates={"made": ["day"]}, date_order="dmy"))
    with pytest.raises(ParameterError, match=r"date_order must be one of dmy, mdy. Got 'ymd'"):
        read(file, target="y", date_order="ymd")


def test_the_order_of_dates_also_holds_for_the_time_of_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"when": f"{1 + i % 9:02}/{1 + i // 9:02}/2026", "a": float(i), "y": "pq"[i % 2]} for i in range(36)]
    words = ["run", str(csv_of(tmp_path, rows)), "--target", "y", "--time", "when", "--model", "arow", "--by", "month"]
    assert main([*words, "--date-order", "dmy", "--format", "json"]) == 0
    assert [each["period"] for each in json.loads(capsys.readouterr().out)["periods"]] == [
        f"2026-0{m}" for m in range(1, 5)
    ]


def test_a_number_that_is_too_large_for_a_float_is_no_point_in_time() -> None:
    with pytest.raises(DataError, match="is not a point in time"):
        parse_time(10**400)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_dates_that_are_beyond_the_calendar_in_utc_are_rejected(text: str) -> None:
    dates = Dates({"made": ["elapsed", "age"]}, "at")
    for value, at in ((text, "2026-03-04"), ("2026-03-04", text)):
        with pytest.raises(DataError, match="not within the years 1 to 9999"):
            dates.features("made", value, at)


@pytest.mark.parametrize("value", [np.datetime64("10000-01-01"), np.datetime64("NaT")])
def test_a_date_of_numpy_that_is_no_date_of_python_is_rejected(value: np.datetime64) -> None:
    with pytest.raises(DataError, match="missing, or not within the years 1 to 9999"):
        parse_time(value)


@pytest.mark.parametrize(("others", "rejected"), [(0, True), (2, True), (3, False), (19, False)])
@pytest.mark.parametrize("first", [False, True])
def test_nine_cells_in_ten_make_a_column_of_dates(others: int, rejected: bool, first: bool, tmp_path: Path) -> None:
    cells = ["late"] * others, ["2026-03-04"] * (20 - others)
    path = tmp_path / "rows.csv"
    lines = [f"{cell},{i % 2}" for i, cell in enumerate([*cells[not first], *cells[first]])]
    path.write_text("\n".join(["when,y", *lines]) + "\n")
    if rejected:
        with pytest.raises(DataError, match=r"column 'when' holds dates such as '2026-03-04'"):
            list(read(path, target="y").blocks())
    else:
        assert sum(map(len, read(path, target="y").blocks())) == 20


NUMBERS = st.from_regex(
    r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", alphabet="+-.eE0123456789", fullmatch=True
)


@given(st.one_of(st.integers().map(str), st.floats().map(str), NUMBERS))
def test_no_number_looks_like_a_date(text: str) -> None:
    assert parse_number(text) is not None
    assert not looks_like_time(text)


def test_two_numbers_in_one_cell_are_no_number() -> None:
    assert inferred_type(["1", "2.5", "-3e4", "inf", ".5"]) == "numeric"
    assert inferred_type(["1\n2", "3", "4"]) == "category"


@pytest.mark.parametrize("role", ["target", "id", "weight"])
def test_dates_have_no_other_role(tmp_path, role):
    path = tmp_path / "a.csv"
    path.write_text("when,y\n2026-01-01,a\n")
    options = {"target": "y"} | {role: "when"}
    with pytest.raises(ParameterError, match=f"'when' is given as {role} and in dates"):
        read(path, dates={"when": ["month"]}, **options)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1_772_324_483, "2026-03-01 00:21:23"),
        ("1772324483000", "2026-03-01 00:21:23"),
        ("01.03.2026", "01.03.2026"),
        ("12", "12"),
        (None, ""),
        (float("nan"), ""),
    ],
)
def test_times_as_they_are_shown(value: Any, shown: str) -> None:
    assert shown_time(value) == shown
