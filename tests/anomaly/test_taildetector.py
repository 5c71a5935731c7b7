"""TailDetector follows its oracle."""

from __future__ import annotations

import math

import pytest

import varifold
from tests.anomaly.streams import follow
from tests.oracles.taildetector import Tail


def test_follows_the_oracle() -> None:
    follow(varifold.TailDetector(window=60), Tail(60))


def test_beyond_the_window_a_surprise_grows_with_the_distance_from_the_median() -> None:
    model = varifold.TailDetector()
    for i in range(101):
        model.learn_one({"a": float(i), "constant": 3.0})
    outermost = model.score_one({"a": 100.0}) - math.log(2)  # of 101 values, the value itself and none
    assert model.score_one({"a": 250.0}) > model.score_one({"a": 150.0}) > model.score_one({"a": 101.0})
    assert model.score_one({"a": -200.0}) == pytest.approx(model.score_one({"a": 300.0}))
    far = model.score_one({"a": 1.5e308})
    assert far == model.score_one({"a": 1e9}) == model.score_one({"a": -1.7e308})
    assert far < outermost + 10.0
    assert model.score_one({"constant": 1e300}) == model.score_one({"constant": 4.0})  # no spread to compare with
