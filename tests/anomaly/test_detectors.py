"""All detectors: evictions, renames, rates of alarms."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest

import varifold
from tests.anomaly.streams import instances, normal_rows
from tests.oracles.detection import Alarms as OracleAlarms
from varifold._engine.conformal.alarms import Alarms


@pytest.mark.parametrize("name", list(varifold.detectors))
def test_an_evicted_feature_is_forgotten(name: str) -> None:
    one = varifold.detectors[name](max_features=3)
    rng = random.Random(1)
    for t in range(200):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
        one.learn_one({**x, "c": rng.gauss(0, 1) if t < 100 else None, "d": rng.random() if t >= 100 else None})
    assert "c" not in one.features
    live = set(one._engine.space.live())
    for key, slots in one._engine.dump()[2].items():
        if key.endswith(("slots", "feature")):
            assert set(slots.tolist()) <= {0, *live}, key


@pytest.mark.parametrize("name", list(varifold.detectors))
def test_a_rename_keeps_the_state(name: str) -> None:
    model = varifold.detectors[name]()
    rows = instances(200)
    model.learn_many(rows)
    before = model.score_one({"a": 5.0, "b": 1.0})
    model.rename({"a": "alpha"})
    assert model.score_one({"alpha": 5.0, "b": 1.0}) == before


@pytest.mark.parametrize("name", ["taildetector", "autodetector"])
def test_alarms_on_normal_data_have_the_rate(name: str) -> None:
    """Within a fifth over any 5,000 rows, through an outage of a group and births of columns."""
    model = varifold.detectors[name]()
    _, p = model.run_block(varifold.to_block(normal_rows(12_000, 3)))
    for rate in (0.01, 0.05):
        totals = np.cumsum(np.concatenate([[0], p <= rate]))
        shares = (totals[6000:] - totals[1000:-5000]) / 5000
        assert shares.min() > 0.8 * rate, (rate, shares.min())
        assert shares.max() < 1.2 * rate, (rate, shares.max())


def test_scores_that_wander_raise_few_alarms_more_than_the_rate() -> None:
    """Bursts in which each score is above all others cost a level no more than one of the last 1,000 scores."""
    alarms, rng, wandering = Alarms(), random.Random(1), 0.0
    raised = [0]
    for _ in range(12_000):
        wandering = 0.99 * wandering + rng.gauss(0, 0.14)
        score = 3.0 * abs(wandering) + 0.1 * rng.random()
        raised.append(raised[-1] + (alarms.p_value_of(score) <= 0.01))
        alarms.add(score)
    most = max(raised[t + 5000] - raised[t] for t in range(1000, 7001))
    assert 50 < most < 100  # the rate would be 50; the largest of 1,000 scores is an alarm whatever came before


def test_a_rate_outside_0_to_1_is_rejected() -> None:
    with pytest.raises(varifold.errors.ParameterError, match="rate"):
        varifold.TailDetector().is_anomaly_one({"a": 1.0}, rate=2.0)


@pytest.mark.parametrize("name", list(varifold.detectors))
def test_an_instance_like_all_others_is_no_alarm(name: str) -> None:
    """Also at the largest rate, after any number of equal scores; at first those of AutoDetector still rise."""
    model = varifold.detectors[name]()
    _, p = model.run_block(varifold.to_block([{"a": 1.0, "state": "on"}] * 6000))
    assert (p[2000:] > 0.2).mean() > 0.95
    assert model.p_value_one({"a": 1.0, "state": "on"}) > 0.2


def test_equal_scores_are_alarms_together_or_not_at_all() -> None:
    """A third of the instances has the largest score: no alarm. A hundredth: that hundredth, at a rate of .02."""
    alarms, oracle, rng = Alarms(), OracleAlarms(), random.Random(1)
    hits = {0.0: 0, 1.0: 0, 2.0: 0}
    for t in range(8000):
        draw = rng.random()
        score = 2.0 if draw < 0.01 else 1.0 if draw < 0.3 else 0.0
        p = alarms.p_value_of(score)
        assert p == pytest.approx(oracle.p_value(score), rel=1e-9), t
        hits[score] += t > 1000 and p <= 0.02
        alarms.add(score)
        oracle.observe(score)
    assert hits[0.0] == hits[1.0] == 0
    assert hits[2.0] > 50


@pytest.mark.parametrize("name", ["loda", "xstream"])
def test_explaining_a_wide_instance_takes_bounded_time(name: str) -> None:
    rng = random.Random(3)
    model = varifold.detectors[name]()
    for _ in range(5):
        model.learn_one({f"f{i}": rng.gauss(0, 1) for i in range(6_000)})
    x = {f"f{i}": rng.gauss(0, 1) for i in range(6_000)}
    started = time.process_time()
    parts = model.explain_one(x)
    assert time.process_time() - started < 5.0, "half a minute if every feature is left out in turn"
    assert math.fsum(parts.values()) == pytest.approx(model.score_one(x), abs=1e-9)
    assert 1 <= sum(part != 0.0 for part in parts.values()) <= 250_000 // 6_000 + 1
    narrow = {f"f{i}": x[f"f{i}"] for i in range(400)}
    for left_out in ("f0", "f399"):
        without = {feature: value for feature, value in narrow.items() if feature != left_out}
        expected = model.score_one(narrow) - model.score_one(without)
        assert model.explain_one(narrow).get(left_out, 0.0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["taildetector", "neighboursdetector", "autodetector"])
def test_stuck_sensors_are_no_alarm_without_end(name: str) -> None:
    """Means that still follow let the scores creep upwards, each above all others; the rate holds all the same."""
    X = np.random.default_rng(0).normal(size=(6000, 4))
    X[2000:] = 0.3
    _, p = varifold.detectors[name]().run_block(varifold.to_block(X))
    assert (p[2000:3000] <= 0.01).mean() < 0.04
    assert (p[3000:] <= 0.01).mean() < 0.015  # 1 for TailDetector if a score above all others always is an alarm


def test_a_score_above_all_others_is_an_alarm_after_a_burst() -> None:
    """Except while scores creep."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=3000)
    scores[1000:1200] += 5.0 * rng.random(200)
    alarms, oracle = Alarms(), OracleAlarms()
    for t, score in enumerate(scores.tolist()):
        assert alarms.p_value_of(score) == pytest.approx(oracle.p_value(score), rel=1e-9), t
        alarms.add(score)
        oracle.observe(score)
    assert alarms.p_value_of(50.0) <= 0.01
    hits = 0
    for t in range(1000):
        score = 10.0 + t / 100
        alarm = alarms.p_value_of(score) <= 0.01
        assert alarm == (oracle.p_value(score) <= 0.01), t
        hits += alarm
        alarms.add(score)
        oracle.observe(score)
    assert 15 < hits < 25
