"""Detectors follow their oracles; explanations, evictions and alarms."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import varifold
from tests.oracles import detectors as oracles
from varifold.evaluate import detection_scores


def instances(count: int, seed: int = 0) -> list[dict[Any, Any]]:
    """Correlated numbers, some with few values, a string column, absences, a late feature, a silent group."""
    rng = random.Random(seed)
    rows = []
    for t in range(count):
        a = rng.gauss(0.0, 1.0)
        x: dict[Any, Any] = {"a": a, "b": 3.0 * a + rng.gauss(0.0, 0.3), "c": float(rng.randrange(4)), 7: rng.random()}
        x["state"] = rng.choice(["on", "on", "off"])
        if t > count // 2:
            x["late"] = rng.expovariate(1.0)
        if count // 3 < t < count // 3 + 30:
            del x["a"], x["b"]
        rows.append({name: v for name, v in x.items() if rng.random() < 0.85})
    return rows


def plain(x: dict[Any, Any]) -> dict[Any, float]:
    return {f"{k}={v}" if isinstance(v, str) else k: 1.0 if isinstance(v, str) else float(v) for k, v in x.items()}


CASES = [
    (varifold.TailDetector(window=60), lambda: oracles.Tail(60), 300),
    (varifold.CopulaDetector(window=60), lambda: oracles.Copula(60), 300),
    (varifold.NeighboursDetector(k=3, window=50), lambda: oracles.Neighbours(3, 50), 300),
    (varifold.IsolationDetector(trees=10, window=30, seed=4), lambda: oracles.Isolation(10, 30, 4), 300),
    (
        varifold.HalfSpaceTrees(trees=5, depth=5, window=40, seed=3),
        lambda: oracles.HalfSpace(5, 5, 40, 3),
        300,
    ),
    (varifold.PresenceDetector(forget=0.02), lambda: oracles.Presence(0.02), 300),
    (varifold.LODA(projections=12, seed=3), lambda: oracles.LODA(12, 3), 300),
    (
        varifold.XStream(projections=9, chains=6, depth=7, window=60, seed=5),
        lambda: oracles.XStream(9, 6, 7, 60, 256, 5),
        300,
    ),
    (varifold.AutoDetector(seed=2), lambda: oracles.Auto(2), 350),
]


@pytest.mark.parametrize(("detector", "make", "count"), CASES, ids=lambda case: getattr(type(case), "__name__", ""))
def test_follows_the_oracle(detector: Any, make: Any, count: int) -> None:
    model, oracle, alarms = detector.clone(), make(), oracles.Alarms()
    space, slots = model._engine.space, {}
    for t, x in enumerate(instances(count)):
        given = plain(x)
        columns = isinstance(oracle, oracles.Presence)  # a new value of a known column is present, too
        known = given if columns else {name: v for name, v in given.items() if name in slots}
        score = oracle.score(known, slots) if known or columns else 0.0
        assert model.score_one(x) == pytest.approx(score, rel=1e-9, abs=1e-9), t
        assert model.p_value_one(x) == pytest.approx(alarms.p_value(model.score_one(x)), rel=1e-9), t
        if given or columns:
            alarms.observe(model.score_one(x))
        model.learn_one(x)
        slots.update({name: space.id_of(name) for name in given})
        if given or columns:
            oracle.learn(given, slots)
    assert len(alarms.recent.scores) > 200


def test_labels_weigh_the_experts_as_the_oracle_does() -> None:
    model, oracle = varifold.AutoDetector(), oracles.Auto()
    space, slots = model._engine.space, {}
    for t, x in enumerate(instances(300, seed=4)):
        given = plain(x)
        known = {name: v for name, v in given.items() if name in slots}
        score = oracle.score(known, slots) if known else 0.0
        assert model.score_one(x) == pytest.approx(score, rel=1e-9, abs=1e-9), t
        model.learn_one(x)
        slots.update({name: space.id_of(name) for name in given})
        oracle.learn(given, slots)
        if t > 50 and t % 3 == 0 and given:
            odd = {"a": 2.0, "b": -4.0 - t % 5}  # only together
            for labelled, anomaly in ((x, False), (odd, True)):
                model.label_one(labelled, anomaly)
                oracle.label(plain(labelled), slots, anomaly)
    assert list(model.weights.values()) == pytest.approx(oracle.weights().tolist(), rel=1e-9)
    assert model.weights["tail"] < 1.0 / 4.5
    before = model.weights
    model.label_one({"never seen": 1.0}, True)
    assert model.weights == before
    loaded = varifold.from_bytes(model.to_bytes())
    assert loaded.weights == before
    with pytest.raises(varifold.errors.TargetError, match="pass True"):
        model.label_one({"a": 1.0}, 1)  # type: ignore[arg-type]


def test_labels_find_the_expert_of_a_stream() -> None:
    """Anomalies that only break a correlation: with labels of a few, the others are found better."""

    def rows(seed: int) -> tuple[list[dict[str, float]], list[bool]]:
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(3000, 1)) + 0.3 * rng.normal(size=(3000, 8))
        odd = rng.random(3000) < 0.05
        z[odd, 0] *= -1.0
        return [{f"f{j}": float(v) for j, v in enumerate(row)} for row in z], odd.tolist()

    areas = []
    for share in (0.0, 0.1):
        model, rng = varifold.AutoDetector(), random.Random(1)
        data, odd = rows(3)
        scores = []
        for x, anomaly in zip(data, odd, strict=True):
            scores.append(model.score_one(x))
            model.learn_one(x)
            if rng.random() < share:
                model.label_one(x, anomaly)
        areas.append(detection_scores(scores, odd, [False] * len(odd)).auroc)
    assert areas[1] > areas[0] + 0.01


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


def normal_rows(count: int, seed: int) -> list[dict[str, float]]:
    """Normal data: correlated features, a group that is silent for 2,000 rows, columns born on the way, drift."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(count, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=(count, 8))
    rows = []
    for t in range(count):
        x = {f"f{j}": float(z[t, j]) for j in range(8) if not (j < 3 and 4000 <= t < 6000) and (j < 6 or t >= 7000)}
        rows.append(x)
    return rows


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


def test_an_outage_is_no_series_of_alarms() -> None:
    model = varifold.AutoDetector()
    _, p = model.run_block(varifold.to_block(normal_rows(7_000, 5)))
    assert (p[4000:4100] <= 0.01).sum() <= 5


def test_a_broken_correlation_names_its_features() -> None:
    model = varifold.CopulaDetector()
    rng = random.Random(2)
    for _ in range(600):
        a = rng.gauss(0, 1)
        model.learn_one({"a": a, "b": a + rng.gauss(0, 0.1), "c": rng.gauss(0, 1)})
    parts = model.explain_one({"a": 1.5, "b": -1.5, "c": 0.2})
    assert set(list(parts)[:2]) == {"a", "b"}
    assert math.fsum(parts.values()) == pytest.approx(model.score_one({"a": 1.5, "b": -1.5, "c": 0.2}))


def test_a_rate_outside_0_to_1_is_rejected() -> None:
    with pytest.raises(varifold.errors.ParameterError, match="rate"):
        varifold.TailDetector().is_anomaly_one({"a": 1.0}, rate=2.0)
