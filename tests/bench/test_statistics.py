"""Statistics against their definitions and against scikit-posthocs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from varifold.bench.statistics import (
    Ranking,
    average_ranks,
    critical_difference,
    paired_t,
    rank,
    stretch_t,
    win_tie_loss,
)
from varifold.errors import DataError


def test_paired_t_is_scipys():
    draw = np.random.default_rng(0)
    a, b = draw.normal(0, 1, 10), draw.normal(0.5, 1, 10)
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
    assert math.isnan(paired_t(a, a + 1.0 / 8))
    assert math.isnan(paired_t(a[:1], b[:1]))
    with pytest.raises(DataError, match="10 and 9"):
        paired_t(a, b[:9])


def test_ties_share_a_rank():
    assert average_ranks(np.array([[0.1, 0.2, 0.2], [0.3, 0.1, 0.2]])).tolist() == [2.0, 1.75, 2.25]


def test_critical_difference_of_the_papers():
    """OVFIV: three methods over 17 data sets; q of the usual tables."""
    assert critical_difference(3, 17) == pytest.approx(0.804, abs=5e-4)
    for k, q in {2: 1.960, 5: 2.728, 10: 3.164}.items():
        assert critical_difference(k, 6) == pytest.approx(q * math.sqrt(k * (k + 1) / 36), abs=2e-3)


def test_friedman_with_ties_by_hand():
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [2.0, 1.0, 3.0], [1.0, 3.0, 2.0]])
    found = rank(["a", "b", "c"], scores)
    n, k = scores.shape
    ranks = np.array(found.ranks)
    plain = 12 * n / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4)
    correction = 1 - (2**3 - 2) / (n * (k**3 - k))
    assert found.chi2 == pytest.approx(plain / correction)
    assert found.p == pytest.approx(stats.chi2.sf(found.chi2, k - 1))


def test_nemenyi_agrees_with_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    draw = np.random.default_rng(3)
    scores = draw.normal(size=(12, 5)) + np.array([0, 0.1, 0.8, 1.5, 3])
    found = rank(list("abcde"), scores)
    p = posthocs.posthoc_nemenyi_friedman(scores).to_numpy()
    ranks = np.array(found.ranks)
    differs = np.abs(ranks[:, None] - ranks[None, :]) > found.difference
    assert np.array_equal(differs, p < 0.05)
    assert differs.any()
    assert not differs[np.triu_indices(5, 1)].all()


def test_bars_join_what_does_not_differ():
    found = rank(list("abcd"), np.tile([1.0, 2.0, 3.0, 4.0], (20, 1)))
    assert found.difference == pytest.approx(critical_difference(4, 20))
    assert found.ties() == [(0, 1), (1, 2), (2, 3)]
    assert rank(["a", "b"], np.tile([1.0, 2.0], (20, 1))).ties() == []


def test_wins_ties_losses():
    draw = np.random.default_rng(1)
    low = [draw.normal(0.1, 0.01, 10) for _ in range(3)]
    high = [draw.normal(0.3, 0.01, 10), low[1] + draw.normal(0, 0.01, 10), draw.normal(0.0, 0.01, 10)]
    assert win_tie_loss(low, high) == (1, 1, 1)
    assert win_tie_loss([np.full(5, 0.2)], [np.full(5, 0.3)]) == (1, 0, 0)
    assert win_tie_loss([np.full(5, 0.2)], [np.full(5, 0.2)]) == (0, 1, 0)


def test_nemenyi_p_values():
    """Of the printed ranks of OVFIV's Table 3: .36 is printed for base Naive."""
    ranked = Ranking(("variation", "feature", "ensemble"), (3.0, 1.265, 1.735), 17, 0.0, 0.0, 0.0)
    assert ranked.nemenyi("ensemble", "feature") == pytest.approx(0.36, abs=0.005)
    assert ranked.nemenyi("feature", "ensemble") == ranked.nemenyi("ensemble", "feature")
    assert ranked.nemenyi("feature", "feature") == pytest.approx(1.0)
    edge = Ranking(("a", "b", "c"), (1.0, 1.0 + critical_difference(3, 17), 3.0), 17, 0.0, 0.0, 0.0)
    assert edge.nemenyi("a", "b") == pytest.approx(0.05, abs=1e-6)


def test_a_single_stream_is_tested_by_its_stretches():
    rng = np.random.default_rng(0)
    ends = np.arange(1.0, 61.0) * 20
    wrong = rng.random((2, 1200)) < np.array([[0.2], [0.35]])
    a, b = (np.cumsum(w)[19::20] / ends for w in wrong)
    expected = stats.ttest_rel(*(w.reshape(60, 20).mean(axis=1) for w in wrong)).pvalue
    assert stretch_t(a, b, ends) == pytest.approx(expected)
    assert expected < 0.001
    assert np.isnan(stretch_t(a, a, ends))
    last_short = np.append(ends[:-1], ends[-1] - 5)
    assert 0 < stretch_t(a, b, last_short) < 0.01
    late = a.copy()
    late[:3] = np.nan
    assert 0 < stretch_t(late, b, ends) < 0.01
