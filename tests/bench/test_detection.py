"""The leaderboard of detectors: ours, peers row by row, offline ones; its means; what it rejects."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import varifold
from varifold import Block, datasets
from varifold.base.spec import parse_model
from varifold.bench import find_table, plan
from varifold.bench.cell import Cell
from varifold.bench.compare import fill
from varifold.bench.detection import detect, matrix
from varifold.bench.peers import river as river_peers
from varifold.bench.peers import tails
from varifold.bench.runner import missing_model
from varifold.bench.sources import stream_of
from varifold.bench.study import define
from varifold.bench.work import attempt, measure
from varifold.cli import main
from varifold.errors import DataError, ParameterError
from varifold.report.leaderboard import means_grid

PEERS = ("capymoa", "pysad", "rcf3")


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data set of one's own: 600 rows, 30 of them far from the others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 4))
    X[::20] += 4.0
    rows = [{f"c{j}": float(v) for j, v in enumerate(row)} for row in X]
    y = [int(i % 20 == 0) for i in range(600)]
    Path("odd_rows.py").write_text(f"def data():\n    return {rows!r}, {y!r}\n")
    return "odd_rows:data"


def cell(data: str, model: str, scenario: str = "vfs:0.3") -> Cell:
    return Cell(data, scenario, True, "positive=1", model, "", 1)


def test_every_set_is_registered_and_every_detector_can_be_made_or_names_what_is_missing() -> None:
    table = find_table("anomaly")
    assert len(table.data) == 16
    assert {datasets.find(data.load).group for data in table.data} == {"anomaly"}
    assert {m.default[0] for m in table.methods if m.group == "varifold"} == set(varifold.detectors)
    for text in {each.model for each in plan([table])}:
        reason = missing_model(text, imports=True)
        library = next((name for name in PEERS if f".peers.{name}:" in text), None)
        if library is not None and find_spec(library) is None:
            assert f"needs {library}, which is not installed" in reason
        else:
            assert reason == "" or "Java" in reason


@pytest.mark.parametrize(
    "model", ["taildetector", "varifold.bench.peers.river:LODA", "varifold.bench.peers.tails:ECOD"]
)
def test_an_outcome_is_the_area_under_the_curves_of_the_scores(odd: str, model: str) -> None:
    outcome = measure(cell(odd, model))
    block = stream_of(cell(odd, model)).prepared.block
    truth = np.array(block.y) == 1
    detector = parse_model(model, imports=True, detectors=True)()
    if model == "taildetector":
        scores = []
        for x in block.rows():
            scores.append(detector.score_one(x))
            detector.learn_one(x)
    elif model.endswith("LODA"):
        scores = []
        for x in block.rows():
            scores.append(detector.score_one(x) if x else 0.0)
            if x:
                detector.learn_one(x)
    else:
        scores = detector.score_all(matrix(block))
    assert outcome.auroc == pytest.approx(roc_auc_score(truth, scores))
    assert outcome.auprc == pytest.approx(average_precision_score(truth, scores))
    assert outcome.auroc > 0.7
    assert (outcome.instances, outcome.scored) == (600, 600)
    assert math.isnan(outcome.cer)
    assert outcome.cpu > 0


def test_a_matrix_has_nan_where_a_value_is_absent() -> None:
    X = matrix(Block.from_dicts([{"a": 1.0}, {"b": 2.0, "a": 0.0}]))
    np.testing.assert_array_equal(X, [[1.0, math.nan], [0.0, 2.0]])


def test_offline_tails_are_those_of_their_papers() -> None:
    X = np.array([[1.0], [2.0], [3.0], [10.0]])
    left, right = -np.log([0.25, 0.5, 0.75, 1.0]), -np.log([1.0, 0.75, 0.5, 0.25])
    assert tails.ECOD().score_all(X) == pytest.approx(np.maximum(left, right))
    assert tails.COPOD().score_all(X) == pytest.approx(np.maximum((left + right) / 2, right))  # skewed to the right
    with pytest.raises(TypeError, match="offline"):
        tails.ECOD().score_one({"a": 1.0})
    with pytest.raises(TypeError, match="offline"):
        tails.COPOD().learn_one({"a": 1.0})


def test_scores_that_are_no_numbers_and_streams_without_anomalies_are_rejected() -> None:
    class Broken(tails.Offline):
        def score_all(self, X):
            return np.full(len(X), np.nan)

    block = Block.from_dicts([{"a": 1.0}] * 4, [0, 1, 0, 0])
    with pytest.raises(DataError, match="4 of 4 scores are NaN"):
        detect(Broken(), block, 1)
    with pytest.raises(DataError, match="no row has the label 7"):
        detect(varifold.TailDetector(), block, 7)


def test_river_detectors_score_before_they_have_learned() -> None:
    for make in (river_peers.HalfSpaceTrees, river_peers.LODA, river_peers.OneClassSVM):
        detector = make()
        assert math.isfinite(detector.score_one({"a": 1.0}))
        detector.learn_one({"a": 1.0})


TOML = """
title = "odd"
caption = "odd rows"
metrics = ["auroc"]
leaderboard = true
detectors = true
repeats = 2
columns = ["default"]
[[setting]]
name = "complete"
scenario = "none"
[[setting]]
name = "half"
scenario = "vfs:0.5"
[[data]]
name = "odd"
load = "odd_rows:data"
positive = "1"
[[method]]
name = "tails"
default = "taildetector"
[[method]]
name = "presence"
repeats = 1
default = "presencedetector"
"""


def test_a_table_of_detectors_shows_means_by_setting(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("board.toml").write_text(TOML)
    table = find_table("board.toml")
    outcomes = dict(attempt(each) for each in plan([table]))
    assert len(outcomes) == 6  # two seeds of one, one of the other, two settings
    grid = means_grid(fill(table, outcomes), "auroc")
    assert [name for name, _ in grid.rows] == ["tails", "presence"]
    values = [o.auroc for c, o in outcomes.items() if c.model == "taildetector" and c.scenario == "none"]
    assert float(grid.rows[0][1][0].text) == pytest.approx(np.mean(values), abs=5e-4)
    assert "▸" in grid.rows[0][1][0].sign
    assert grid.rows[0][1][2].text.endswith("µs")
    argv = ["bench", "run", "board.toml", "--store", "board.sqlite", "--models"]
    assert main([*argv, "loda:projections=20"]) == 0
    assert "loda:projections=20" in capsys.readouterr().out
    assert main([*argv, "arow"]) == 2
    assert "anomalies a detector" in capsys.readouterr().err


def test_a_detector_is_no_learner_of_ones_own_data(odd: str) -> None:
    with pytest.raises(ParameterError, match="bench run anomaly"):
        define(odd, None, "loda", "none", 1)
    with pytest.raises(ParameterError, match="loda is a detector, which has no target; use `varifold detect`"):
        parse_model("loda")
    with pytest.raises(ParameterError, match=r"no class with learn_one and predict_one$"):
        parse_model("varifold:LODA", imports=True)
