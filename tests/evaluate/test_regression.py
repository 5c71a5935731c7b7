"""Prequential evaluation of regressors: metrics, curves, late targets, river's regressors, streams of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import linear_model, preprocessing
from sklearn import metrics

import varifold
from varifold import streams
from varifold.errors import DataError, ParameterError, TargetError
from varifold.evaluate import REGRESSION_METRICS, RegressionResult, prequential, repeat
from varifold.evaluate.regression_metrics import RegressionTally

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 4))
Y = 20.0 + X @ np.array([3.0, -2.0, 1.0, 0.0]) + RNG.normal(size=300)
PAIRS: list[tuple[dict[Any, Any], Any]] = [
    ({f"f{j}": float(X[i, j]) for j in range(4) if (i + j) % 3}, float(Y[i])) for i in range(300)
]


def by_hand(learner: Any, pairs: list[Any], delay: int = 0) -> tuple[list[float], list[float], list[float]]:
    """Targets, predictions, and the mean of the targets learned, from the first instance after a target was learned."""
    truth, found, means, learned = [], [], [], []
    for t in range(len(pairs)):
        if learned:
            truth.append(pairs[t][1])
            found.append(learner.predict_one(pairs[t][0]))
            means.append(float(np.mean(learned)))
        if t >= delay:
            learner.learn_one(*pairs[t - delay])
            learned.append(pairs[t - delay][1])
    return truth, found, means


@pytest.mark.parametrize("delay", [0, 15])
def test_metrics_are_scikit_learns(delay: int) -> None:
    result = prequential(varifold.AROWRegressor(), PAIRS, delay=delay, quantile=0.8)
    truth, found, means = by_hand(varifold.AROWRegressor(), PAIRS, delay)
    assert isinstance(result, RegressionResult)
    assert (result.instances, result.scored) == (300, 299 - delay)
    assert result.mae == pytest.approx(metrics.mean_absolute_error(truth, found), rel=1e-9)
    assert result.rmse == pytest.approx(metrics.root_mean_squared_error(truth, found), rel=1e-9)
    assert result.r2 == pytest.approx(metrics.r2_score(truth, found), rel=1e-9)
    assert result.mape == pytest.approx(metrics.mean_absolute_percentage_error(truth, found), rel=1e-9)
    assert result.pinball == pytest.approx(metrics.mean_pinball_loss(truth, found, alpha=0.8), rel=1e-9)
    assert result.mean_mae == pytest.approx(metrics.mean_absolute_error(truth, means), rel=1e-9)
    assert (result.lowest, result.highest) == (min(truth), max(truth))
    assert set(result.metrics()) == set(REGRESSION_METRICS)


def test_mape_only_where_every_target_is_positive() -> None:
    tally = RegressionTally()
    tally.add(np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.zeros(2))
    assert tally.scores()["mape"] == 0.25
    tally.add(np.array([0.0]), np.array([1.0]), np.zeros(1))
    assert np.isnan(tally.scores()["mape"])


def test_the_curve_ends_at_the_metrics() -> None:
    result = prequential(varifold.AROWRegressor(), PAIRS, curve_points=10, track="importances")
    curve = result.curve
    assert curve.at.tolist() == list(range(30, 301, 30))
    assert curve.mae[-1] == pytest.approx(result.mae)
    assert curve.rmse[-1] == pytest.approx(result.rmse)
    scored = np.array([29] + [30] * 9)
    assert float((curve.window_mae * scored).sum() / scored.sum()) == pytest.approx(result.mae)
    assert float(((curve.window_rmse**2) * scored).sum() / scored.sum()) == pytest.approx(result.rmse**2)
    assert curve.importances[-1].keys() == {"f0", "f1", "f2", "f3"}
    assert curve.known[-1] == 4


def test_rivers_regressors_get_dicts() -> None:
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    result = prequential(model, PAIRS, delay=4)
    truth, found, _ = by_hand(preprocessing.StandardScaler() | linear_model.LinearRegression(), PAIRS, 4)
    assert result.mae == pytest.approx(metrics.mean_absolute_error(truth, found), rel=1e-9)


@pytest.mark.parametrize("kind", ["block", "labels", "stream", "prepared"])
def test_every_kind_of_stream(kind: str) -> None:
    rows, y = [x for x, _ in PAIRS], [y for _, y in PAIRS]
    stream: Any = {
        "block": varifold.to_block(rows, y, numeric=True),
        "labels": varifold.to_block(rows, y),
        "stream": streams.read([{**x, "y": y} for x, y in PAIRS], target="y", block_rows=40),
        "prepared": streams.prepare(varifold.to_block(rows, y, numeric=True), shuffle=False),
    }[kind]
    expected = prequential(varifold.AROWRegressor(), PAIRS)
    assert prequential(varifold.AROWRegressor(), stream).mae == pytest.approx(expected.mae, rel=1e-12)


def test_missing_targets_are_neither_scored_nor_learned() -> None:
    pairs = [(x, None if t % 4 == 0 else y) for t, (x, y) in enumerate(PAIRS)]
    model = varifold.AROWRegressor()
    result = prequential(model, pairs)
    assert (result.unlabelled, model.steps, result.scored) == (75, 225, 224)


def test_the_wrong_task_is_rejected() -> None:
    block = varifold.to_block([x for x, _ in PAIRS], [y for _, y in PAIRS], numeric=True)
    with pytest.raises(DataError, match="use a regressor"):
        prequential(varifold.AROW(), block)
    with pytest.raises(TargetError, match="is 'up' of type str"):
        prequential(varifold.AROWRegressor(), [({"a": 1.0}, "up")])
    with pytest.raises(ParameterError, match="quantile"):
        prequential(varifold.AROWRegressor(), PAIRS, quantile=1.5)


def test_repeats_are_summarised() -> None:
    block = varifold.to_block([x for x, _ in PAIRS], [y for _, y in PAIRS], numeric=True)
    summary = repeat(varifold.AROWRegressor, block, scenario="vfs:0.5", repeats=3)
    assert summary.metric_names == REGRESSION_METRICS
    assert summary.metrics()["mae"]["std"] > 0
    assert "mae" in str(summary)


def test_informative_absence_goes_by_the_median() -> None:
    rows = [{"a": 1.0, "b": 1.0, "y": t + 0.5} for t in range(2000)]
    block = varifold.to_block([{"a": 1.0, "b": 1.0} for _ in rows], [r["y"] for r in rows], numeric=True)
    prepared = streams.prepare(block, "informative:a=0,b=1,half=first", shuffle=True, seed=1).block
    kept = np.array(["a" in x for x in prepared.rows()])
    assert (kept == (np.array(prepared.y) <= 1000.0)).all()
    varied = streams.vary(streams.read(rows, target="y", block_rows=300), "informative:a=0,b=1,half=first")
    kept = [("a" in x, y) for b in varied.blocks() for x, y in zip(b.rows(), b.y, strict=True)]
    assert all(there == (y <= 1000.0) for there, y in kept)
