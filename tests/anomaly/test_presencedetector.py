"""PresenceDetector follows its oracle."""

from __future__ import annotations

import varifold
from tests.anomaly.streams import follow
from tests.oracles.presencedetector import Presence


def test_follows_the_oracle() -> None:
    follow(varifold.PresenceDetector(forget=0.02), Presence(0.02), columns=True)
