"""IsolationDetector follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.isolationdetector import Isolation


def test_follows_the_oracle() -> None:
    follow(varifold.IsolationDetector(trees=10, window=30, seed=4), Isolation(10, 30, 4))
