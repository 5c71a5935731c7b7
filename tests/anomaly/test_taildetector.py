"""TailDetector follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.taildetector import Tail


def test_follows_the_oracle() -> None:
    follow(varifold.TailDetector(window=60), Tail(60))
