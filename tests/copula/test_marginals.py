"""Windows against sorted copies of all they hold."""

import numpy as np
import pytest
from scipy.stats import norm

from tests.oracles.copula import PlainMarginal
from varifold.copula._marginals import Marginals

DRAWS = {
    "continuous": lambda rng: rng.normal(),
    "boolean": lambda rng: float(rng.random() < 0.3),
    "ordinal": lambda rng: float(rng.integers(9)),
    "mixed": lambda rng: 0.0 if rng.random() < 0.6 else rng.exponential(),
    "drifting": lambda rng: float(rng.integers(3)),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("W", [2, 7, 60])
def test_places_follow_the_window(kind, W):
    rng = np.random.default_rng(3)
    marginals, plain = Marginals(W, 14), PlainMarginal(W, 14)
    marginals.reserve(3)
    for step in range(200):
        x = DRAWS[kind](rng) + (step // 70 if kind == "drifting" else 0)
        z, low, high = marginals.placed(1, x)
        expected, interval = plain.place(x)
        assert (low is None) == (interval is None)
        np.testing.assert_allclose(z, expected, rtol=0, atol=1e-12)
        if interval is not None:
            np.testing.assert_allclose((low, high), interval, rtol=0, atol=1e-12)
        marginals.learn(1, x)
        plain.commit(x)
        assert marginals.level_count(1) == len(set(plain.values))
    counts, values = marginals.dump(3)
    assert counts.tolist() == [0, W, 0]
    np.testing.assert_array_equal(values, plain.values)


def test_asking_changes_nothing():
    marginals = Marginals(5, 14)
    marginals.reserve(1)
    for x in (3.0, 1.0, 2.0, 2.0, 5.0, 4.0):
        marginals.learn(0, x)
    before = marginals.dump(1)
    for x in (-1.0, 2.0, 99.0):
        marginals.placed(0, x)
    after = marginals.dump(1)
    np.testing.assert_array_equal(before[1], after[1])


def test_inverse_returns_what_was_placed():
    rng = np.random.default_rng(0)
    marginals = Marginals(100, 14)
    marginals.reserve(2)
    continuous, ordinal = rng.normal(size=100), rng.integers(5, size=100).astype(float)
    for a, b in zip(continuous, ordinal, strict=True):
        marginals.learn(0, a)
        marginals.learn(1, b)
    for j in range(0, 100, 7):
        rank = (np.sort(continuous) <= continuous[j]).sum()
        assert marginals.inverse(0, norm.ppf(rank / 101)) == pytest.approx(continuous[j], abs=1e-9)
        assert marginals.inverse(1, marginals.placed(1, ordinal[j])[0]) == ordinal[j]
    assert marginals.inverse(0, 40.0) == continuous.max()
    assert marginals.inverse(0, -40.0) == continuous.min()
    assert marginals.inverse(1, 40.0) == 4.0


def test_a_feature_turns_continuous_when_it_shows_more_levels():
    marginals = Marginals(200, 14)
    marginals.reserve(1)
    kinds = []
    for x in range(20):
        kinds.append(marginals.placed(0, float(x))[1] is not None)
        marginals.learn(0, float(x))
    assert kinds == [True] * 14 + [False] * 6


def test_fill_takes_what_dump_gave():
    rng = np.random.default_rng(1)
    first, second = Marginals(10, 3), Marginals(10, 3)
    first.reserve(4)
    for _ in range(60):
        first.learn(int(rng.integers(4)), float(rng.integers(6)))
    second.fill(*first.dump(4))
    for _ in range(30):
        j, x = int(rng.integers(4)), float(rng.integers(6))
        assert first.placed(j, x) == second.placed(j, x)
        first.learn(j, x)
        second.learn(j, x)
        assert first.level_count(j) == second.level_count(j)
    with pytest.raises(ValueError, match="more values"):
        Marginals(5, 3).fill(*first.dump(4))
