"""Natural streams: made of small files as of the real ones, in their order, with late labels."""

import gzip
import json
import math
from dataclasses import replace

import pytest

import varifold
from varifold import datasets, evaluate, streams
from varifold.cli import main
from varifold.datasets.natural import natural
from varifold.report.presence import time_marks

NATURAL = [name for name in datasets.names() if datasets.find(name).group == "natural"]


def made(tmp_path, name, text, **changes):
    path = tmp_path / "small.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    block, times = natural(replace(datasets.find(name), **changes), path)
    return block, times


def test_the_registry_describes_each():
    assert {"football-odds", "physionet2012", "melbourne-pedestrians", "nhanes", "weather-aus"} <= set(NATURAL)
    for entry in map(datasets.find, NATURAL):
        assert entry.order
        assert entry.known
        assert entry.target
        assert entry.licence
        assert entry.recipe
        assert not any(file.url for file in entry.files)


def test_rows_keep_their_order_and_times(tmp_path):
    text = "date,Div,HomeTeam,AwayTeam,B365H,FTR\n2000-01-03,E0,a,b,,H\n2000-01-04,E0,c,d,1.5,D\n2000-01-05,D1,e,f,2,A"
    block, times = made(tmp_path, "football-odds", text)
    assert list(block.rows())[:2] == [
        {"Div": "E0", "HomeTeam": "a", "AwayTeam": "b"},
        {"Div": "E0", "HomeTeam": "c", "AwayTeam": "d", "B365H": 1.5},
    ]
    assert block.y == ["H", "D", "A"]
    assert times == ["2000-01-03", "2000-01-04", "2000-01-05"]


def test_rows_without_a_label_are_left_out(tmp_path):
    text = (
        "ID,DiabetesAge,WTINT2YR,WTMEC2YR,SDMVPSU,SDMVSTRA,Race3,TVHrsDay,CompHrsDay,BMICatUnder20yrs,Age,Diabetes\n"
        "1,,1,1,1,1,,,,,34,No\n2,,1,1,1,1,,,,,4,\n3,40,1,1,1,1,White,2_hr,,,50,Yes\n"
    )
    block, _ = made(tmp_path, "nhanes", text)
    assert list(block.rows()) == [{"Age": 34.0}, {"Age": 50.0, "Race3": "White", "TVHrsDay": "2_hr"}]
    assert block.y == ["No", "Yes"]


def test_a_stay_is_one_instance(tmp_path):
    text = "patient,hour,Age,Gender,Height,HR,ICUType,death\n"
    text += "1,0,54,0,,77,4,0\n1,1,,,,60,,0\n1,3,,,,70,,0\n2,0,60,1,,,2,1"
    block, _ = made(tmp_path, "physionet2012", text)
    first, second = block.rows()
    assert first == {"Age": 54.0, "Gender": 0.0, "HR": 70.0, "HR:lowest": 60.0, "HR:highest": 77.0, "ICUType": "4"}
    assert second == {"Age": 60.0, "Gender": 1.0, "ICUType": "2"}
    assert block.y == [0, 1]


def test_one_hour_ahead(tmp_path):
    hours = [f"2012-01-{1 + i // 24:02d} {i % 24:02d}:00:00" for i in range(30) if i != 5]
    counts = [i for i in range(30) if i != 5]
    text = "t,s4,s9\n" + "".join(f"{t},{10 * i},{'' if i % 2 else i}\n" for t, i in zip(hours, counts, strict=True))
    block, times = made(tmp_path, "melbourne-pedestrians", text)
    rows = dict(zip(times, zip(block.rows(), block.targets.tolist(), strict=True), strict=True))
    x, y = rows["2012-01-02 01:00:00"]
    assert x == {"s4": 250.0, "hour": 2.0, "weekday": "Mon", "s4:day before": 20.0}
    assert y == 260.0
    assert "2012-01-01 04:00:00" not in rows  # the hour after it is not in the file
    assert hours[-1] not in rows
    assert not any(math.isnan(v) for x, _ in rows.values() for v in x.values() if isinstance(v, float))


def data_set(**changes):
    entry = replace(datasets.find("weather-aus"), **changes)
    block = varifold.to_block([{"a": float(i)} for i in range(60)], ["Yes", "No"] * 30)
    return datasets.Dataset(entry, block)


def test_the_order_is_kept_and_labels_are_late_by_default():
    ordered, permuted = data_set(), data_set(order="")
    assert streams.prepare(ordered).block.values.tolist() == list(range(60))
    assert streams.prepare(ordered, shuffle=True).block.values.tolist() != list(range(60))
    assert streams.prepare(permuted).block.values.tolist() != list(range(60))
    assert streams.prepare(ordered).delay == 49
    assert streams.prepare(ordered, "delay:3").delay == 3
    learned = evaluate.repeat(varifold.OLVF, ordered, repeats=1)
    late = evaluate.repeat(varifold.OLVF, ordered.block, repeats=1, shuffle=False, delay=49)
    assert learned.cer == late.cer


def test_a_missing_file_names_its_recipe(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("VARIFOLD_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["data", "show", "nhanes"]) == 1
    assert "`python -m benchmarks.natural.nhanes` of a checkout makes it" in capsys.readouterr().err


def test_the_list_has_a_group(capsys):
    assert main(["data", "list"]) == 0
    shown = capsys.readouterr().out.split("natural: streams")[1]
    assert all(name in shown for name in NATURAL)
    assert main(["data", "list", "--format", "json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["weather-aus"]["delay"] == 49
    assert entries["melbourne-pedestrians"]["task"] == "regression"


@pytest.mark.parametrize(
    ("times", "names"),
    [
        ([f"{2000 + i // 10}-05-01" for i in range(60)], ["2001", "2002", "2003", "2004", "2005"]),
        ([f"2012-{1 + i // 10:02d}-01" for i in range(60)], ["2012-02", "2012-03", "2012-04", "2012-05", "2012-06"]),
        ([f"2008-{m:02d}-01" for m in (1, 2, 3, *[4] * 99, *[5] * 99, *[6] * 99)], ["2008-02", "2008-05", "2008-06"]),
        (["2012-01-01"] * 5, []),
        ([], []),
    ],
)
def test_marks_of_the_time_axis(times, names):
    assert [name for _, name in time_marks(times)] == names
