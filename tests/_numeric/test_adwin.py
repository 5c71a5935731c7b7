"""The change detector next to a slow twin and next to river's."""

import copy
import math
import pickle
import random

import pytest
import river.drift

from tests.oracles.adwin import Adwin
from varifold.drift import ADWIN
from varifold.errors import DataError, ParameterError


def stream(kind, n, seed):
    rng = random.Random(seed)
    for t in range(n):
        level = {"stable": 0.3, "jump": 0.2 if t < n // 2 else 0.6, "slope": t / n, "back": 0.1 + 0.5 * (t // 300 % 2)}
        if kind == "values":
            yield rng.gauss(0.0 if t < n // 3 else 0.5, 0.2)
        else:
            yield float(rng.random() < level[kind])


@pytest.mark.parametrize("kind", ["stable", "jump", "slope", "back", "values"])
@pytest.mark.parametrize("settings", [{}, {"delta": 0.3, "clock": 1, "min_part": 2, "grace": 3}, {"clock": 7}])
def test_it_follows_the_oracle(kind, settings):
    ours, twin = ADWIN(**settings), Adwin(**settings)
    for x in stream(kind, 1000, 1):
        ours.update(x)
        assert ours.drift_detected == twin.update(x)
        window = twin.numbers()
        assert ours.width == len(window)
        assert ours.estimation == pytest.approx(sum(window) / len(window), abs=1e-9)
        mean = sum(window) / len(window)
        assert ours.variance == pytest.approx(sum((v - mean) ** 2 for v in window) / len(window), abs=1e-9)


def detections(detector, numbers):
    found = []
    for t, x in enumerate(numbers):
        detector.update(x)
        if detector.drift_detected:
            found.append(t)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_it_notices_a_jump_when_rivers_does(seed):
    numbers = list(stream("jump", 4000, seed))
    ours, theirs = detections(ADWIN(), numbers), detections(river.drift.ADWIN(), numbers)
    assert len(ours) == 1
    assert abs(ours[0] - theirs[0]) <= 32
    assert abs(ours[0] - 2000) < 150


@pytest.mark.parametrize("seed", range(5))
def test_the_window_is_cut_where_the_mean_changed(seed):
    detector = ADWIN()
    detections(detector, stream("jump", 4000, seed))
    assert abs(detector.width - 2000) < 100
    assert detector.estimation == pytest.approx(0.6, abs=0.05)


def test_false_alarms_are_rare():
    assert sum(len(detections(ADWIN(), stream("stable", 10_000, seed))) for seed in range(10)) <= 1


def test_numbers_from_one_stream_of_millions_stay_bounded():
    """A window of 200,000 numbers is held in 17 rows of buckets."""
    detector = ADWIN(clock=1000)
    for _ in range(200_000):
        detector.update(0.5)
    assert detector.width == 200_000
    assert len(pickle.dumps(detector)) < 4000


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_a_copy_goes_on_to_the_bit(duplicate):
    numbers = list(stream("back", 3000, 3))
    detector = ADWIN(0.05, clock=3)
    detections(detector, numbers[:1000])
    other = duplicate(detector)
    assert detections(other, numbers[1000:]) == detections(detector, numbers[1000:])
    assert (other.estimation, other.variance, other.width, other.n_detections) == (
        *(detector.estimation, detector.variance, detector.width, detector.n_detections),
    )


def test_the_largest_numbers_leave_a_state_that_can_be_copied():
    detector = ADWIN(clock=1)
    for i in range(300):
        detector.update(1e308 if i % 2 else -1e308)
    assert math.isfinite(detector.variance)
    assert math.isfinite(detector.estimation)
    other = pickle.loads(pickle.dumps(detector))
    assert (other.variance, other.estimation, other.width) == (detector.variance, detector.estimation, detector.width)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_rejected(value):
    detector = ADWIN()
    detector.update(1.0)
    with pytest.raises(DataError, match="number 2 is"):
        detector.update(value)
    assert (detector.width, detector.estimation) == (1, 1.0)


@pytest.mark.parametrize(
    "settings", [{"delta": 0.0}, {"delta": 1.0}, {"delta": math.nan}, {"clock": 0}, {"min_part": 0}, {"grace": -1}]
)
def test_settings_out_of_range_are_rejected(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        ADWIN(**settings)


def test_a_state_that_cannot_be_is_rejected():
    detector = ADWIN()
    detections(detector, stream("stable", 100, 0))
    numbers, *rest = detector.__reduce__()[2]
    for broken in (numbers[:-1], numbers * float("nan"), -numbers):
        with pytest.raises(ValueError, match=r"another detector|cannot be"):
            ADWIN().__setstate__((broken, *rest))
