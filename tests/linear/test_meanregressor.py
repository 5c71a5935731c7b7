"""MeanRegressor predicts the weighted mean of the targets, and explains it as such."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.harness import mixed_stream, numbered
from varifold import MeanRegressor


def test_the_weighted_mean() -> None:
    model = MeanRegressor()
    seen: list[tuple[float, float]] = []
    for x, y, w in numbered(mixed_stream(120, labels=3, weights=True, strings=True, seed=3)):
        expected = np.average([t for t, _ in seen], weights=[v for _, v in seen]) if seen else 0.0
        assert model.predict_one(x) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        model.learn_one(x, y, w)
        if w:
            seen.append((y, w))
    assert model.explain_one({"f1": 1.0}) == {"f1": 0.0, "(intercept)": model.predict_one({})}
