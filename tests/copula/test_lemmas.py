"""Lemmas 1 and 2 of OVFM: the estimated marginals of a buffer are close to the true ones, as often as bounded."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from varifold.copula._marginals import Marginals

SIZES = (250, 1000, 4000)
DRAWS = 20


def buffer(size, values):
    marginals = Marginals(size, 14)
    marginals.reserve(1)
    for value in values:
        marginals.learn(0, float(value))
    return marginals


def bound_1(size, epsilon, low=0.1, high=0.9):
    """2 exp(-c1 eps^2 |B|) with the constants of the proof, for the quantiles F(m) and F(M)."""
    k2 = 1 / min(norm.pdf(norm.ppf(low / 2)), norm.pdf(norm.ppf((1 + high) / 2)))
    k1 = min(low / 4, (1 - high) / 4)
    assert 2 * k2 / size < epsilon < 2 * k1 * k2, "the lemma does not cover the rest"
    return 2 * math.exp(-size * epsilon**2 / (2 * k2**2))


def largest_error(size, rng):
    """sup |f^-1 - its estimate| over the values between the quantiles .1 and .9 of an exponential distribution."""
    marginals = buffer(size, rng.exponential(size=size))
    at = np.linspace(0.1, 0.9, 161)
    return max(abs(marginals.placed(0, -math.log1p(-u))[0] - norm.ppf(u)) for u in at)


def test_lemma_1_for_continuous_variables():
    rng = np.random.default_rng(0)
    errors = {size: np.array([largest_error(size, rng) for _ in range(DRAWS)]) for size in SIZES}
    for epsilon in (0.2, 0.3, 0.45):
        for size in SIZES:
            assert np.mean(errors[size] > epsilon) <= bound_1(size, epsilon)
    assert bound_1(4000, 0.45) < 0.05, "a bound above 1 is empty"
    # the rate of the lemma: sixteen times the buffer, a quarter of the error
    assert np.median(errors[250]) / np.median(errors[4000]) == pytest.approx(4.0, rel=0.35)


SHARES = np.array([0.2, 0.3, 0.1, 0.4])


def bound_2(size, epsilon):
    """2^k exp(-c2 |B| eps^2 / (k - 1)^2), c2 = 1 / (8 K2^2) as in the proof."""
    k = len(SHARES)
    k2 = 1 / min(norm.pdf(norm.ppf(SHARES[0] / 2)), norm.pdf(norm.ppf(1 - SHARES[-1] / 2)))
    return 2**k * math.exp(-size * epsilon**2 / (8 * k2**2 * (k - 1) ** 2))


def cutoff_error(size, rng):
    """Sum of |cutoff - its estimate| over the levels but the last: the upper ends of their intervals."""
    marginals = buffer(size, rng.choice(len(SHARES), size=size, p=SHARES))
    found = [marginals.placed(0, float(level))[2] for level in range(len(SHARES) - 1)]
    return float(np.abs(found - norm.ppf(np.cumsum(SHARES)[:-1])).sum())


def test_lemma_2_for_ordinal_variables():
    rng = np.random.default_rng(1)
    errors = {size: np.array([cutoff_error(size, rng) for _ in range(DRAWS)]) for size in SIZES}
    for epsilon in (0.3, 1.0, 3.0):
        for size in SIZES:
            assert np.mean(errors[size] > epsilon) <= bound_2(size, epsilon)
    assert bound_2(4000, 3.0) < 0.05
    assert np.median(errors[250]) / np.median(errors[4000]) == pytest.approx(4.0, rel=0.5)
