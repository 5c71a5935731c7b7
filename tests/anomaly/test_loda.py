"""LODA follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.loda import LODA


def test_follows_the_oracle() -> None:
    follow(varifold.LODA(projections=12, seed=3), LODA(12, 3))
