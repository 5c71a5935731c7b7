"""Streams for detectors, and how a detector is compared with its oracle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.oracles.detection import Alarms


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


def follow(detector: Any, oracle: Any, count: int = 300, *, columns: bool = False) -> None:
    """Compare every score and p-value with the oracle's; with `columns`, a new value of a known column is present."""
    model, alarms = detector, Alarms()
    space, slots = model._engine.space, {}
    for t, x in enumerate(instances(count)):
        given = plain(x)
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


def normal_rows(count: int, seed: int) -> list[dict[str, float]]:
    """Normal data: correlated features, a group that is silent for 2,000 rows, columns born on the way, drift."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(count, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=(count, 8))
    rows = []
    for t in range(count):
        x = {f"f{j}": float(z[t, j]) for j in range(8) if not (j < 3 and 4000 <= t < 6000) and (j < 6 or t >= 7000)}
        rows.append(x)
    return rows
