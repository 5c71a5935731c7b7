"""OLVFRegressor follows its definition step by step, in every variant and with everything that can happen around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linear.test_olvf import AROUND
from tests.oracles.harness import follow_numbers, mixed_stream, numbered
from tests.oracles.olvfregressor import PlainOLVFRegressor
from varifold import AROWRegressor, OLVFRegressor

RULES = [
    {},
    {"variant": "printed", "C": 0.3},
    {"C": 0.5, "C_bar": 0.3, "epsilon": 0.0},
    {"B": 0.5, "lam": 0.02, "C": 0.2, "C_bar": 0.05},
    {"B": 0.3, "lam": 0.01, "C": 0.4, "C_bar": 0.2, "variant": "printed"},
]


def twin(m: OLVFRegressor) -> PlainOLVFRegressor:
    return PlainOLVFRegressor(m.C, m.C_bar, m.lam, m.B, m.variant, m.epsilon)


@pytest.mark.parametrize("around", AROUND, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_step(rule: dict[str, Any], around: dict[str, Any]) -> None:
    learner = OLVFRegressor(**rule, **around)
    rows = numbered(mixed_stream(110, labels=3, weights=True, strings=True, seed=6))
    follow_numbers(learner, twin(learner), rows)


def test_errors_within_epsilon_move_nothing() -> None:
    model = OLVFRegressor(epsilon=100.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        model.learn_one({"a": float(rng.normal())}, float(rng.normal()))
    assert model.features["a"].weight == 0.0


def test_an_outlier_moves_the_weights_no_more_than_others() -> None:
    capped, squared = OLVFRegressor(C=0.05), AROWRegressor()
    rng = np.random.default_rng(1)
    for _ in range(400):
        a = float(rng.normal())
        for model in (capped, squared):
            model.learn_one({"a": a}, 3.0 * a)
    before = [model.features["a"].weight for model in (capped, squared)]
    for model in (capped, squared):
        model.learn_one({"a": 2.0}, 1e4)
    after = [model.features["a"].weight for model in (capped, squared)]
    deviation = capped._engine.target.statistics.deviation
    assert abs(after[0] - before[0]) <= 2 * 0.05 * 2.0 * deviation
    assert after[1] - before[1] > 1.0
