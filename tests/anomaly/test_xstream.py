"""XStream follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.xstream import XStream


def test_follows_the_oracle() -> None:
    follow(varifold.XStream(projections=9, chains=6, depth=7, window=60, seed=5), XStream(9, 6, 7, 60, 256, 5))
