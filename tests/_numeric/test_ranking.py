"""Distinct scores with their counts are those of NumPy's unique and bincount."""

import numpy as np
import pytest

from varifold._numeric.ranking import tabulate


def reference(scores, counts):
    distinct, places = np.unique(scores, return_inverse=True)
    return np.vstack([distinct, *(np.bincount(places, weights=row, minlength=len(distinct)) for row in counts)])


def draws(n=20_000):
    draw = np.random.default_rng(2)
    return {
        "probabilities": 1 / (1 + np.exp(-4 * draw.normal(size=n))),
        "ties": draw.integers(0, 50, n) / 7,
        "both signs": draw.normal(size=n) * 10.0 ** draw.integers(-300, 300, n),
        "one value": np.full(n, 0.25),
        "odd ones": np.array([np.nan, 0.0, -0.0, np.inf, 1.0, -np.inf, np.nan, 5e-324, -5e-324, 0.0, -np.nan]),
        "one": np.array([0.5]),
        "none": np.zeros(0),
    }


@pytest.mark.parametrize("kind", draws())
def test_scores_are_sorted_and_counts_added_up(kind):
    scores = draws()[kind]
    counts = np.random.default_rng(3).random((2, len(scores)))
    found = tabulate(scores, counts)
    assert found.flags.writeable
    assert np.array_equal(found, reference(scores, counts), equal_nan=True)


@pytest.mark.parametrize("kind", ["probabilities", "ties", "both signs"])
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_scores_that_rise_already_are_merged(kind, share):
    scores = draws()[kind]
    first = int(share * len(scores))
    scores[:first] = np.sort(scores[:first])
    counts = np.random.default_rng(3).random((2, len(scores)))
    assert np.array_equal(tabulate(scores, counts, first), reference(scores, counts))
