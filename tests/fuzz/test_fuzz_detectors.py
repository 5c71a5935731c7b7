"""Hostile instances through every detector: 10^4 with the other tests, 10^6 with `make fuzz`."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import varifold
from tests.fuzz import extreme_values
from varifold.checks.material import state

LENGTH = 500


@pytest.mark.parametrize("name", list(varifold.detectors))
def test_seeded(name: str, request: pytest.FixtureRequest) -> None:
    for seed in range(max(1, min(request.config.getoption("--instances"), 100_000) // LENGTH // 5)):
        rng = random.Random(f"{name} {seed}")
        params = {"max_features": rng.choice((None, 1, 3, 16, 40)), "evict": rng.choice(("oldest", "lightest"))}
        one = varifold.detectors[name](**params)
        accepted = []
        for _ in range(LENGTH):
            x = extreme_values.instance(rng)
            if not extreme_values.accepted(one.learn_one, x):
                continue
            accepted.append(x)
            score = one.score_one(x)
            assert math.isfinite(score), (params, x)
            assert math.isclose(math.fsum(one.explain_one(x).values()), score, rel_tol=1e-6, abs_tol=1e-6), (params, x)
        other = one.clone()
        for x in accepted:  # a vocabulary would keep names that were evicted, which others may clash with
            other.learn_many([x])
        assert state(one) == state(other)
        again = type(one).from_bytes(one.to_bytes())
        assert state(one) == state(again)


@pytest.mark.parametrize("name", list(varifold.detectors))
def test_a_million_of_a_block(name: str, request: pytest.FixtureRequest) -> None:
    """Instances made with NumPy; as many as requested, at most 2,000 without `make fuzz`."""
    count = request.config.getoption("--instances")
    model = varifold.detectors[name](max_features=24)
    rng = np.random.default_rng(5)
    for _ in range(max(1, (count if count > 100_000 else 2_000) // 2_000)):
        block = extreme_values.hostile_block(rng, 2_000, 2)
        scores, p = model.run_block(block)
        assert np.isfinite(scores).all()
        assert ((p > 0) & (p <= 1)).all()
