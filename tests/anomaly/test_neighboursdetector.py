"""NeighboursDetector follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.neighboursdetector import Neighbours


def test_follows_the_oracle() -> None:
    follow(varifold.NeighboursDetector(k=3, window=50), Neighbours(3, 50))
