"""Intervals and sets in evaluations: scores, curves, kept predictions, late labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from varifold import AROW, AROWRegressor, to_block
from varifold.evaluate import prequential, repeat
from varifold.evaluate.uncertainty import IntervalTally, SetTally


def numbers(n: int = 600) -> list[tuple[dict[str, float], float]]:
    rng = np.random.default_rng(1)
    return [({"a": float(v), "b": 1.0}, float(3.0 * v + rng.normal())) for v in rng.normal(size=n)]


def labelled(n: int = 600) -> list[tuple[dict[str, float], str]]:
    return [(x, "high" if y > 2 else "low" if y < -2 else "middle") for x, y in numbers(n)]


def test_scores_of_intervals_by_hand() -> None:
    tally = IntervalTally((0.5, 0.9))
    inner, outer = [[0.0, 2.0], [0.0, 2.0], [-np.inf, np.inf]], [[-1.0, 3.0], [-1.0, 3.0], [-np.inf, np.inf]]
    tally.add(np.array([1.0, 4.0, 9.0]), np.stack([inner, outer], axis=1))
    half, most = tally.scores()
    assert (half.coverage, half.covered, half.width, half.infinite) == (0.5, 2 / 3, 2.0, pytest.approx(1 / 3))
    assert half.interval_score == pytest.approx((2.0 + 2.0 + 4.0 * 2.0) / 2)
    assert most.interval_score == pytest.approx((4.0 + 4.0 + 20.0 * 1.0) / 2)


def test_scores_of_sets_by_hand() -> None:
    tally = SetTally((0.9,))
    held = np.array([[[True, False, False]], [[True, True, False]], [[False, False, False]]])
    tally.add(np.array([0, 2, 1]), held, np.array([1, 2, 3]))
    (found,) = tally.scores()
    assert (found.covered, found.size, found.empty, found.all_labels) == pytest.approx((1 / 3, 1.0, 1 / 3, 2 / 3))


def test_known_labels_are_counted_at_the_time_of_the_prediction() -> None:
    tally = SetTally((0.9,))
    assert tally.known_before(np.array([0, 0, 2]), np.array([0, 1, 3])).tolist() == [0, 1, 2]
    assert tally.known_before(np.array([1]), np.array([0, 1])).tolist() == [2, 3]


def test_a_run_of_a_regressor_keeps_and_scores_its_intervals() -> None:
    pairs = numbers()
    result = prequential(AROWRegressor(coverages=(0.5, 0.9)), pairs, predictions=True)
    y, bounds = result.predictions.truth, result.predictions.bounds
    covered = (bounds[:, :, 0] <= y[:, None]) & (y[:, None] <= bounds[:, :, 1])
    assert [each.covered for each in result.intervals] == pytest.approx(covered[1:].mean(axis=0))
    assert 0.87 < result.intervals[1].covered < 0.93
    first, second, third = list(result.predictions.records())[:3]
    assert first["low 0.9"] is second["high 0.5"] is None
    assert third["low 0.9"] <= third["low 0.5"] <= third["prediction"] <= third["high 0.5"] <= third["high 0.9"]
    band = result.curve.band
    assert len(band.low) == len(result.curve.at)
    assert (band.low[5:] <= 0.0).all()
    assert (band.high[5:] >= 0.0).all()
    assert np.nanmean(band.covered) == pytest.approx(result.intervals[1].covered, abs=0.02)


def test_a_run_of_a_classifier_keeps_and_scores_its_sets() -> None:
    result = prequential(AROW(coverages=(0.9,)), labelled(), predictions=True)
    held, truth = result.predictions.sets[:, 0], result.predictions.truth
    (found,) = result.sets
    assert found.covered == pytest.approx(held[np.arange(len(truth)), truth].mean())
    assert found.size == pytest.approx(held.sum(axis=1).mean())
    record = list(result.predictions.records())[-1]
    assert isinstance(record["set"], list)
    assert set(record["set"]) <= set(result.labels)


@pytest.mark.parametrize("make", [AROWRegressor, AROW])
def test_learners_without_coverages_are_as_before(make: Any) -> None:
    pairs: Any = numbers(60) if make is AROWRegressor else labelled(60)
    result = prequential(make(), pairs, predictions=True)
    assert (result.intervals if make is AROWRegressor else result.sets) == []
    assert not {"low", "high", "set"} & set(next(result.predictions.records()))


def test_late_targets_and_streams_in_parts_give_as_many_intervals() -> None:
    pairs = numbers(3000)
    result = prequential(AROWRegressor(coverages=(0.9,)), iter(pairs), delay=5, predictions=True, curve_points=20)
    assert result.predictions.bounds.shape == (3000, 1, 2)
    assert len(result.curve.band.low) == len(result.curve.at)
    assert math.isclose(result.intervals[0].covered, 0.9, abs_tol=0.02)


def test_repeats_keep_the_scores() -> None:
    block = to_block(*(list(part) for part in zip(*numbers(200), strict=True)), numeric=True)
    summary = repeat(lambda: AROWRegressor(coverages=(0.9,)), block, repeats=2)
    assert [len(result.intervals) for result in summary.results] == [1, 1]
