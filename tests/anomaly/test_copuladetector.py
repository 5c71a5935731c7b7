"""CopulaDetector follows its oracle."""

from __future__ import annotations

import math
import random

import pytest

import varifold
from tests.anomaly.streams import follow
from tests.oracles.copuladetector import Copula


def test_follows_the_oracle() -> None:
    follow(varifold.CopulaDetector(window=60), Copula(60))


def test_a_broken_correlation_names_its_features() -> None:
    model = varifold.CopulaDetector()
    rng = random.Random(2)
    for _ in range(600):
        a = rng.gauss(0, 1)
        model.learn_one({"a": a, "b": a + rng.gauss(0, 0.1), "c": rng.gauss(0, 1)})
    parts = model.explain_one({"a": 1.5, "b": -1.5, "c": 0.2})
    assert set(list(parts)[:2]) == {"a", "b"}
    assert math.fsum(parts.values()) == pytest.approx(model.score_one({"a": 1.5, "b": -1.5, "c": 0.2}))
