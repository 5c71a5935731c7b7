"""The leaderboard: its tasks, the peers' wrappers, windows of a stream, and the user's learners."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from river import base

from varifold import Block, datasets
from varifold.base.spec import parse_model
from varifold.bench import find_table, plan
from varifold.bench.cell import Cell, Outcome, curve_ends
from varifold.bench.compare import Number, fill
from varifold.bench.peers import naive
from varifold.bench.peers.columns import Arrays, Frequencies, Means
from varifold.bench.provenance import cell_code, code_version
from varifold.bench.runner import missing_model
from varifold.bench.sources import schema_of, stream_of
from varifold.bench.tables import find_tables, leaderboards
from varifold.bench.work import attempt, measure
from varifold.cli import main
from varifold.cli.bench import _narrowed
from varifold.errors import UnknownNameError
from varifold.evaluate import prequential
from varifold.report.leaderboard import entries, joint_ranking, leaderboard_grid, means_grid, stretches, windows
from varifold.streams import prepare

PEERS = {"lightgbm": "lightgbm", "capymoa": "capymoa", "sklearn": "sklearn"}


def natural_cells():
    return [cell for table in find_tables("natural") for cell in plan([table])]


def test_a_group_of_tables_has_one_name():
    assert [table.name for table in find_tables("natural")] == ["natural-labels", "natural-numbers"]
    assert [table.name for table in find_tables("cwfe")] == ["cwfe-2", "cwfe-3"]
    assert not {table.name for table in find_tables("all")} & set(leaderboards())
    with pytest.raises(UnknownNameError, match="there is no table 'naturel'"):
        find_tables("naturel")


def test_there_are_eight_tasks_on_registered_streams_in_their_order():
    streams = {cell.stream for cell in natural_cells()}
    assert len(streams) == 8
    for name, scenario, shuffle, *_ in streams:
        assert datasets.find(name).name == name
        assert (scenario, shuffle) == ("none", False)


def test_every_learner_can_be_made_or_names_the_library_that_is_missing():
    for text in {cell.model for cell in natural_cells()}:
        reason = missing_model(text, imports=True)
        library = next((package for module, package in PEERS.items() if f".peers.{module}:" in text), None)
        if library is not None and find_spec(library) is None:
            assert f"needs {library}, which is not installed" in reason
        else:
            assert reason == "" or "Java" in reason


def test_a_peer_is_run_again_only_if_it_or_the_stream_changes():
    peer = "varifold.bench.peers.river:Logistic"
    assert cell_code(peer).startswith("peers+")
    assert cell_code(peer) != cell_code("varifold.bench.peers.naive:BaseRate")
    assert cell_code("auto").startswith(code_version())


def test_bookmakers_are_averaged_closing_odds_before_others():
    learner = naive.Bookmakers()
    x = {"AH": 2.0, "AD": 4.0, "AA": 4.0, "BH": 4.0, "BD": 4.0, "BA": 2.0, "CH": 1.5, "HomeTeam": "x"}
    assert learner.predict_proba_one(x) == pytest.approx({"H": 0.375, "D": 0.25, "A": 0.375})
    closing = {**x, "BCH": 2.0, "BCD": 4.0, "BCA": 4.0}
    assert learner.predict_proba_one(closing) == pytest.approx({"H": 0.5, "D": 0.25, "A": 0.25})
    for y in "HHA":
        learner.learn_one({}, y)
    assert learner.predict_proba_one({"BH": 2.0}) == pytest.approx({"H": 0.6, "A": 0.4})


def test_naive_predictors_count_what_their_names_say():
    by_column, last = naive.ByColumn("RainToday"), naive.LastLabel()
    for x, y in [({"RainToday": "No"}, 0), ({"RainToday": "No"}, 1), ({"RainToday": "No"}, 0), ({}, 1), ({}, 1)]:
        by_column.learn_one(x, y)
        last.learn_one(x, y)
    assert by_column.predict_proba_one({"RainToday": "No"}) == pytest.approx({0: 0.6, 1: 0.4})
    assert by_column.predict_proba_one({"RainToday": "new"}) == pytest.approx({0: 3 / 7, 1: 4 / 7})
    assert last.predict_proba_one({}) == pytest.approx({0: 0.5, 1: 0.5})  # after 1: 0, 1
    column = naive.Column("week", "day")
    column.learn_one({}, 7.0)
    assert [column.predict_one(x) for x in ({"week": 1.0, "day": 2.0}, {"day": 2.0}, {})] == [1.0, 2.0, 7.0]
    assert Frequencies().shares() == {}


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data set of one's own with numbers, strings and gaps."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {**({"a": float(i % 5)} if i % 3 else {}), "b": float(i), **({"c": "uvw"[i % 3]} if i % 4 else {})}
        for i in range(400)
    ]
    y = ["yes" if x.get("a", 0.0) > 2 or x.get("c") == "u" else "no" for x in rows]
    Path("mixed_rows.py").write_text(f"def data():\n    return {rows!r}, {y!r}\n")
    return "mixed_rows:data"


def test_arrays_and_means_are_those_of_plain_numpy(mixed: str):
    block = datasets.load(mixed).block
    arrays = Arrays(mixed)
    means = Means(arrays)
    assert (set(arrays.names[:2]), arrays.names[2], arrays.schema.labels) == ({"a", "b"}, "c", ("no", "yes"))
    rows = np.array([arrays.row(x) for x in block.rows()])
    codes = {level: code for code, level in enumerate(arrays.schema.levels["c"])}
    for x, row in zip(block.rows(), rows, strict=True):
        assert row[:2] == pytest.approx([x.get(name, math.nan) for name in arrays.names[:2]], nan_ok=True)
        assert row[2] == pytest.approx(codes.get(x.get("c"), math.nan), nan_ok=True)
    for row in rows:
        means.learn(row)
    assert means.means == pytest.approx(np.nanmean(rows[:, :2], axis=0))
    assert means.scaled(rows[7, :2]) == pytest.approx(
        (rows[7, :2] - np.nanmean(rows[:, :2], axis=0)) / np.nanstd(rows[:, :2], axis=0)
    )
    levels, counts = np.unique(rows[~np.isnan(rows[:, 2]), 2], return_counts=True)
    filled = means.filled(np.array([math.nan, 1.0, math.nan]))
    assert filled == pytest.approx([np.nanmean(rows[:, 0]), 1.0, levels[counts.argmax()]])


def cell(data: str, model: str, scale: str = "none") -> Cell:
    return Cell(data, "none", False, scale, model, "", 0)


@pytest.mark.parametrize("name", ["Logistic", "NaiveBayes", "Tree", "AdaptiveTree"])
def test_river_runs_on_strings_and_gaps(mixed: str, name: str):
    outcome = measure(cell(mixed, f"varifold.bench.peers.river:{name}"))
    assert outcome.scored == 400
    assert outcome.cer < outcome.majority_cer
    assert outcome.cpu > 0


@pytest.mark.parametrize("name", ["Linear", "TreeRegressor", "AdaptiveTreeRegressor", "ForestRegressor"])
def test_regressors_of_river_run_on_strings_and_gaps(mixed: str, name: str):
    learner = parse_model(f"varifold.bench.peers.river:{name}", imports=True)()
    for i, x in enumerate(datasets.load(mixed).block.rows()):
        assert math.isfinite(learner.predict_one(x))
        learner.learn_one(x, float(i % 7))


@pytest.mark.skipif(find_spec("lightgbm") is None, reason="LightGBM is not installed (group peers)")
@pytest.mark.parametrize("options", ["", ",last=100", ",continued=True"])
def test_lightgbm_is_fitted_again(mixed: str, options: str):
    text = f"varifold.bench.peers.lightgbm:RefitClassifier:data={mixed},every=50{options}"
    learner = parse_model(text, imports=True)()
    result = prequential(learner, datasets.load(mixed).block)
    assert learner.fitted.num_trees() == (80 if "continued" in options else 100)
    assert result.cer < 0.6 * result.majority_cer


def test_sgd_learns_on_means(mixed: str):
    outcome = measure(cell(mixed, f"varifold.bench.peers.sklearn:SGD:data={mixed}"))
    assert outcome.cer < outcome.majority_cer


@pytest.mark.skipif(find_spec("capymoa") is None, reason="CapyMOA is not installed (group peers)")
@pytest.mark.parametrize(
    "options",
    [
        "name=sleade",
        pytest.param(
            "name=osnn,means=True",
            marks=pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch, which OSNN needs, is not installed"),
        ),
    ],
)
def test_semi_supervised_learners_get_instances_without_a_label(mixed: str, options: str):
    model = f"varifold.bench.peers.capymoa:SemiSupervised:{options},data={mixed}"
    few = measure(Cell(mixed, "labels:0.2", False, "none", model, "", 0))
    assert few.scored == 400
    assert 0.0 < few.cer < 1.0


@pytest.mark.skipif(find_spec("capymoa") is None, reason="CapyMOA is not installed (group peers)")
@pytest.mark.parametrize("options", ["", ",means=True"])
def test_capymoa_runs_on_strings_and_gaps(mixed: str, options: str):
    model = f"varifold.bench.peers.capymoa:Classifier:name=srp,data={mixed}{options}"
    outcome = measure(cell(mixed, model))
    assert outcome.scored == 400
    assert outcome.memory > 0


def test_only_the_first_rows_are_run(mixed: str):
    part = stream_of(cell(mixed, "arow", "first=50")).prepared.block
    assert list(part.rows()) == list(datasets.load(mixed).block.rows())[:50]
    assert set(schema_of(mixed).numbers) == {"a", "b"}


class Mirror(base.Classifier):
    """Keep what it was given."""

    takes_strings = True

    def __init__(self):
        self.seen = []

    def learn_one(self, x, y):
        self.seen.append(x)

    def predict_proba_one(self, x):
        return {}


class Pairs(base.Classifier):
    """Keep instances and labels."""

    _multiclass = True

    def __init__(self):
        self.seen = []

    def learn_one(self, x, y):
        self.seen.append((x, y))

    def predict_proba_one(self, x):
        return {}


def test_strings_reach_a_learner_that_takes_them():
    rows = [{"a": 1.0, "c": "u"}, {"c": "v"}]
    block = Block.from_dicts(rows, ["x", "y"])
    with_strings, without = Mirror(), Mirror()
    without.takes_strings = False
    prequential(with_strings, block)
    prequential(without, block)
    assert with_strings.seen == rows
    assert without.seen == [{"a": 1.0, "c=u": 1.0}, {"c=v": 1.0}]


def test_a_learner_of_another_library_can_get_instances_without_a_label():
    block = Block.from_dicts([{"a": float(i)} for i in range(40)], ["x", "y"] * 20)
    prepared = prepare(block, "labels:0.3", seed=1, shuffle=False)
    given, without = Pairs(), Pairs()
    given.learns_unlabelled = True
    prequential(given, prepared)
    prequential(without, prepared)
    assert [x["a"] for x, _ in given.seen] == list(range(40))
    assert without.seen == [(x, y) for x, y in given.seen if y is not None]
    assert 5 < len(without.seen) < 20
    assert all(y == "xy"[int(x["a"]) % 2] for x, y in without.seen)


def test_few_labels_are_drawn_from_at_most_2000_rows():
    table = find_table("few-labels")
    assert len(table.data) >= 30
    assert [setting.name for setting in table.settings] == ["0.01", "0.05", "0.1", "1"]
    cells = {c for c in plan([table]) if c.data.startswith("varifold.bench.drifting:") and c.seed == 1}
    assert {c.data.partition(":")[2] for c in cells} == {"hyperplane", "blobs", "clusters"}
    streams = {c.scenario: stream_of(c).prepared for c in cells if c.data.endswith("blobs")}
    assert {len(each.block) for each in streams.values()} == {2000}
    assert {each.label_share for each in streams.values()} == {0.01, 0.05, 0.1, 1.0}


SHARES = """
leaderboard = true
baseline = "arow"
columns = ["default"]
repeats = 2
[[setting]]
name = "0.1"
title = "a tenth"
scenario = "labels:0.1"
[[setting]]
name = "0.5"
title = "half"
scenario = "labels:0.5"
[[data]]
name = "mine"
load = "mixed_rows:data"
before = "stretch:300"
[[data]]
name = "ordered"
load = "mixed_rows:data"
before = "stretch:200"
shuffle = false
[[method]]
name = "arow"
default = "arow"
[[method]]
name = "asking"
default = "varifold.ask:AskingClassifier:classifier=(arow),policy={setting}:margin"
"""


def test_a_leaderboard_with_several_settings_has_a_grid_for_each_and_one_of_means(mixed: str, capsys):
    Path("shares.toml").write_text(SHARES)
    table = find_table("shares.toml")
    cells = plan([table])
    assert {(c.shuffle, c.scenario) for c in cells if c.scenario.endswith("0.5")} == {
        (True, "stretch:300+labels:0.5"),
        (False, "stretch:200+labels:0.5"),
    }
    assert {c.model for c in cells if "Asking" in c.model and c.scenario.endswith("0.1")} == {
        "varifold.ask:AskingClassifier:classifier=(arow),policy=0.1:margin"
    }
    filled = fill(table, dict(attempt(each) for each in cells))
    means = means_grid(filled, "cer")
    assert means.columns[:2] == ["a tenth", "half"]
    half = table.settings[1]
    pairs = [[filled.number(half, d, name, "default").mean("cer") for d in table.data] for name in entries(filled)]
    change = 100.0 * (np.array(pairs[1]) / pairs[0] - 1.0)
    by_name = {name: row[1] for name, row in means.rows}
    assert float(by_name["asking"].text) == pytest.approx(np.mean(pairs[1]), abs=1e-3)
    assert by_name["asking"].spread == f"{change.mean():+.1f} % ±{np.std(change, ddof=1) / math.sqrt(2):.1f}"
    assert by_name["arow"].spread == ""
    grid = leaderboard_grid(filled, "cer", half)
    assert grid.spans == [("half: error rate", 2)]
    number = filled.number(half, table.data[0], "arow", "default")
    (found,) = [row[0] for name, row in grid.rows if name == "arow"]
    assert float(found.spread.removeprefix("±")) == pytest.approx(np.std(number.values("cer"), ddof=1), abs=1e-3)
    assert main(["bench", "run", "shares.toml", "--store", "s.sqlite", "--html", "shares.html"]) == 0
    assert "half: error rate" in Path("shares.html").read_text(encoding="utf-8")


def number_of(losses: np.ndarray) -> Number:
    ends = curve_ends(len(losses))
    so_far = np.array([losses[:end].mean() for end in ends], dtype="<f4").tobytes()
    fields = dict.fromkeys(Outcome.__dataclass_fields__, math.nan)
    outcome = Outcome(**{**fields, "instances": len(losses), "curve": so_far, "loss_curve": so_far})
    return Number(outcomes=(outcome,))


def test_windows_are_means_of_the_losses_within():
    losses = np.random.default_rng(3).random(6000)
    ends, within = stretches(number_of(losses), "log_loss")
    assert ends.tolist() == list(range(100, 6001, 100))
    assert within == pytest.approx(losses.reshape(60, 100).mean(axis=1), abs=1e-4)
    assert windows(number_of(losses), "log_loss") == pytest.approx(losses.reshape(5, 1200).mean(axis=1), abs=1e-4)
    assert np.isnan(windows(number_of(losses), "auroc")).all()


TOML = """
metrics = ["log_loss", "cer"]
leaderboard = true
columns = ["default"]
[[setting]]
name = "as it is"
scenario = "none"
shuffle = false
[[data]]
name = "made"
load = "synthetic"
first = 600
naive = "varifold.bench.peers.naive:BaseRate"
[[data]]
name = "mine"
load = "mixed_rows:data"
naive = "varifold.bench.peers.naive:BaseRate"
[[method]]
name = "arow"
default = "arow"
[[method]]
name = "river"
default = "varifold.bench.peers.river:Logistic"
[[method]]
name = "naive"
default = "{naive}"
[[method]]
name = "absent"
default = "nowhere.to:BeFound"
"""


def test_a_leaderboard_of_ones_own_is_run_and_extended(mixed: str, capsys, tmp_path: Path):
    Path("board.toml").write_text(TOML)
    Path("mine.py").write_text("from varifold import AROW\n\nclass Best(AROW):\n    pass\n")
    assert main(["bench", "run", "board.toml", "--method", "naive", "--store", "s.sqlite"]) == 0
    first = capsys.readouterr()
    assert "2 cells" in first.err
    argv = ["bench", "run", "board.toml", "--models", "mine:Best", "--store", "s.sqlite"]
    assert main([*argv, "--markdown", "board.md", "--html", "board.html"]) == 0
    done = capsys.readouterr()
    assert "left out: nowhere.to:BeFound" in done.err
    assert "2 were done" in done.err
    text = (tmp_path / "board.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert {"arow", "river", "naive", "mine:Best", "absent"} <= set(rows)
    assert rows.index("naive") > rows.index("arow")
    assert "critical difference diagram" in (tmp_path / "board.html").read_text(encoding="utf-8")
    assert main([*argv, "--only", "made", "--method", "arow"]) == 0
    with pytest.raises(UnknownNameError, match="no learner 'arrow' in these tables; did you mean arow"):
        _narrowed([find_table("board.toml")], None, ["arrow"])
    (table,) = _narrowed([find_table("anomaly")], None, ["autodetector", "LODA"])
    assert [method.name for method in table.methods] == ["AutoDetector", "LODA"]
    for name in ("olsf", "OLSF", "Olsf"):
        survey, ovfm = _narrowed([find_table("survey"), find_table("ovfm-2")], None, [name])
        assert (survey.methods, survey.also) == ((), ("olsf",))
        assert ([method.name for method in ovfm.methods], ovfm.also) == (["OLSF"], ())


def test_the_best_is_first_and_marked(mixed: str, tmp_path: Path):
    Path("board.toml").write_text(TOML)
    table = find_table("board.toml")
    outcomes = dict(attempt(each) for each in plan([table]) if "nowhere" not in each.model)
    filled = fill(table, outcomes)
    grid = leaderboard_grid(filled, "log_loss")
    assert [name for name, _ in grid.rows][-1] == "absent"
    for j in range(2):
        values = {name: float(cells[j].text) for name, cells in grid.rows if cells[j].text != "–"}
        marked = [name for name, cells in grid.rows if cells[j].sign == "▸"]
        assert marked == [min(values, key=values.__getitem__)]
    found = joint_ranking([filled])
    assert found is not None
    assert set(found.names) == {"arow", "river", "naive"}
