"""Learners, data sets, scenarios and tables of the user's own: by path and by entry point."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import varifold
from varifold import checks, datasets, streams
from varifold.base import plugins
from varifold.base.spec import append_parameters
from varifold.bench.tables import find_table
from varifold.cli import main
from varifold.errors import DataError, EntryPointError, ParameterError, UnknownNameError

MINE = '''
"""Of the user's own."""
import varifold

def coins():
    """Two hundred throws of two coins."""
    rows = [{"first": i % 2, "second": i // 2 % 2} for i in range(200)]
    return rows, ["odd" if (i + i // 2) % 2 else "even" for i in range(200)]

def first_only(segment, until: int = 50):
    """Until then only the first coin is there."""
    block = segment.block
    rows = [x if i >= until else {"first": x["first"]} for i, x in enumerate(block.rows())]
    return segment.with_block(varifold.to_block(rows, block.y))

def read_file():
    return varifold.streams.read("coins.csv", target="side")

def forgets(segment):
    pass

def nothing():
    return [1, 2]

NUMBER = 3
Mine = varifold.AROW
TABLE = __file__.replace("mine_own.py", "mine.toml")
'''
TOML = """
metrics = ["cer"]
repeats = 2
[[setting]]
name = "half"
scenario = "mine_own:first_only:until=10"
[[data]]
name = "coins"
load = "mine_own:coins"
[[method]]
name = "AROW"
default = "arow"
"""
PROJECT = """[varifold.datasets]
coins = mine_own:coins
[varifold.scenarios]
first-only = mine_own:first_only
broken = mine_own:missing
[varifold.tables]
mine = mine_own:TABLE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "mine_own.py").write_text(MINE)
    (tmp_path / "mine.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("mine_own", None)
    datasets.own.own_data.cache_clear()


@pytest.fixture
def package(folder: Path) -> Iterator[Path]:
    """The same as an installed package with entry points."""
    info = folder / "mine_own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(PROJECT)
    importlib.invalidate_caches()
    plugins.entry_points_of.cache_clear()
    yield folder
    plugins.entry_points_of.cache_clear()


@pytest.mark.usefixtures("folder")
def test_by_path(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", "mine_own:coins", "--scenario", "mine_own:first_only:until=80+vfs:0.1", "--model", "arow"]
    assert main(["run", *words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["instances"], found["features"]) == (200, 2)
    prepared = streams.prepare(datasets.load("mine_own:coins"), "mine_own:first_only:5", seed=3)
    assert [len(x) for x in prepared.block.rows()] == [1] * 5 + [2] * 195
    assert datasets.find("mine_own:coins").title == "Two hundred throws of two coins."
    assert main(["data", "show", "mine_own:coins", "--scenario", "mine_own:first_only"]) == 0
    assert main(["scenarios", "mine_own:first_only"]) == 0
    assert "Until then only the first coin is there." in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_function_may_read_a_file() -> None:
    Path("coins.csv").write_text("first,side\n" + "0,even\n1,odd\n" * 30)
    assert len(datasets.load("mine_own:read_file").block) == 60
    with pytest.raises(UnknownNameError, match=r"'coins\.csv'; it is a file: give it without --data, to a table as"):
        datasets.load("coins.csv")


BARE = """title = "Mine"
[[setting]]
name = "half"
scenario = "vfs:0.5"
[[data]]
name = "mine_own:coins"
[[method]]
name = "arow"
default = "arow"
"""


@pytest.mark.usefixtures("folder")
def test_a_table_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    table = find_table("mine.toml")
    assert (table.name, table.title, table.repeats) == ("mine", "mine", 2)
    assert main(["bench", "run", "mine.toml", "--store", "s.sqlite", "--html", "page.html"]) == 0
    assert "2 cells" in capsys.readouterr().err
    Path("wrong.toml").write_text("[[setting]]\ntitle = 'no name'")
    with pytest.raises(DataError, match=r"wrong.toml is no table: \[\[setting\]\] number 1 has no name; docs/own.md"):
        find_table("wrong.toml")
    Path("bare.toml").write_text(BARE)
    assert main(["bench", "run", "bare.toml", "--store", "s.sqlite"]) == 0
    assert "Mine" in capsys.readouterr().out
    for line, message in (
        ("repeats = 'x'", r"repeats must be a whole number from 1 on\. Got 'x' instead"),
        ("repeat = 3", r"there is no entry 'repeat'; did you mean repeats"),
        ("repeats = 0", r"repeats must be a whole number from 1 on\. Got 0 instead"),
        ("intercept = 1", r"intercept must be true or false\. Got 1 instead"),
        ("metrics = 'cer'", r"metrics must be a list of texts\. Got 'cer' instead"),
        ("metrics = ['creer']", r"there is no metric 'creer'"),
        ("variant = 'x'", r"variant must be written as \[\[variant\]\]"),
        ("published = 'none.csv'", r"published = 'none\.csv', cannot be read: No such file"),
    ):
        Path("bad.toml").write_text(f"{line}\n{BARE}")
        with pytest.raises(DataError, match=f"bad.toml is no table: .*{message}"):
            find_table("bad.toml")
    Path("bad.toml").write_text(BARE + "intercept = 'yes'")
    with pytest.raises(DataError, match=r"intercept of \[\[method\]\] number 1 must be true or false"):
        find_table("bad.toml")
    Path("bad.toml").write_text(BARE.replace("mine_own:coins", "coin"))
    with pytest.raises(DataError, match=r"bad\.toml is no table: no data set is called 'coin'"):
        find_table("bad.toml")  # a report too, which runs nothing
    Path("more.toml").write_text(BARE + "colour = 3")
    for line, message in (
        ("colour = 3", r"there is no entry 'colour' of \[\[method\]\] number 1"),
        ("grid = 3", r"grid of \[\[method\]\] number 1 must be written as \{ key = value \}\. Got 3 instead"),
        ("grid = { r = 3 }", r"an entry has a value of the wrong type"),
    ):
        Path("more.toml").write_text(BARE + line)
        with pytest.raises(DataError, match=f"more.toml is no table: {message}"):
            find_table("more.toml")
    Path("figures.csv").write_text("setting,dataset\nhalf,mine_own:coins\n")
    Path("printed.toml").write_text("published = 'figures.csv'\n" + BARE)
    with pytest.raises(DataError, match=r"figures.csv has no column 'method'; it needs setting, dataset"):
        find_table("printed.toml")
    with pytest.raises(DataError, match=r"gone.toml cannot be read"):
        find_table("gone.toml")
    with pytest.raises(UnknownNameError, match=r"NAME\.toml"):
        find_table("mine")


@pytest.mark.usefixtures("folder")
def test_a_grid_over_the_parameters_of_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    method = 'default = "mine_own:Mine"\npaper = "mine_own:Mine"\ngrid = { r = [0.1, 1] }'
    Path("searched.toml").write_text("repeats = 1\n" + BARE.replace('default = "arow"', method))
    assert main(["bench", "run", "searched.toml", "--store", "s.sqlite"]) == 0
    done = capsys.readouterr().err
    assert "3 cells run" in done
    assert "left out" not in done


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("olvf", "olvf:C=2"),
        ("olvf:paper", "olvf:paper,C=2"),
        ("olvf:B=1", "olvf:B=1,C=2"),
        ("mine:Mine", "mine:Mine:C=2"),
        ("mine:Mine:B=1", "mine:Mine:B=1,C=2"),
    ],
)
def test_parameters_are_appended(text: str, expected: str) -> None:
    assert append_parameters(text, "C=2") == expected


@pytest.mark.usefixtures("package")
def test_by_entry_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert "coins" in datasets.names()
    assert len(datasets.load("coins").block) == 200
    assert len(next(iter(streams.prepare(datasets.load("coins"), "first-only:5", shuffle=False).block.rows()))) == 1
    assert find_table("mine").data[0].load == "mine_own:coins"
    assert main(["data", "list"]) == 0
    assert "\ncoins " in capsys.readouterr().out
    assert main(["data", "info", "coins"]) == 0
    assert main(["bench", "list"]) == 0
    assert "\nmine " in capsys.readouterr().out
    with pytest.raises(EntryPointError, match=r"'broken' \(mine_own:missing\) of mine-own cannot be imported"):
        streams.prepare(datasets.load("coins"), "broken")


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_used_is_rejected() -> None:
    coins = datasets.load("mine_own:coins")
    for wrong, error, message in (
        ("mine_own:fist_only", UnknownNameError, "first_only"),
        ("gone:first_only", UnknownNameError, "no module named 'gone'"),
        ("mine_own:NUMBER", ParameterError, "not a function"),
        ("mine_own:forgets", ParameterError, r"returned a NoneType; return segment\.with_block"),
        ("mine_own:first_only:after=3", ParameterError, "it has: until"),
        ("vsf:0.5", UnknownNameError, "vfs"),
    ):
        with pytest.raises(error, match=message):
            streams.prepare(coins, wrong)
    for wrong, message in (("mine_own:NUMBER", "must be a function"), ("mine_own:nothing", "returned a list")):
        with pytest.raises(DataError, match=message):
            datasets.load(wrong)


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    shown = capsys.readouterr().out
    for name in streams.scenarios():
        assert f"\n{name} " in shown
    assert main(["scenarios", "--format", "json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(found) == set(streams.scenarios())
    assert main(["scenarios", "trapezoidal"]) == 0
    assert capsys.readouterr().out.startswith("trapezoidal: ")
    assert main(["scenarios", "trapezoida"]) == 2


def test_everything_that_is_missing_is_named() -> None:
    class Stranger:
        def learn_one(self, x: Any, y: Any) -> None: ...

    with pytest.raises(ParameterError, match=r"has no predict_one\(\) and no clone\(\) and no predict_proba_one\(\)"):
        checks.check_learner(Stranger())


def test_the_guide_names_what_its_example_has() -> None:
    guide = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = Path(varifold.__file__).parent / "linear"
    source = example / "olvf.py"
    assert "src/varifold/linear/olvf.py" in guide
    assert "src/varifold/linear/_olvf.pyx" in guide
    text = source.read_text()
    for word in ("@declared", "_parameters", "_rule("):
        assert word in text
        assert word.rstrip("(") in guide
    assert "(LinearClassifier)" in text
    doc = varifold.OLVF.__doc__ or ""
    order = [doc.index(part) for part in ("Parameters\n", "Notes\n", "Examples\n", "References\n")]
    assert order == sorted(order)
    assert "Deviations from the paper" in doc
