"""Statistical comparison of methods: paired t-tests, average ranks, Friedman and Nemenyi, wins, ties and losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.errors import DataError

__all__ = ["Ranking", "average_ranks", "critical_difference", "paired_t", "rank", "stretch_t", "win_tie_loss"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
ALPHA = 0.05


def paired_t(a: Floats, b: Floats) -> float:
    """Return the two-sided p-value of a paired t-test over repeats with the same seeds; NaN if undefined.

    It is undefined for fewer than two repeats, and when the differences do not vary.
    """
    if len(a) != len(b):
        raise DataError(f"a paired test needs the same repeats on both sides; there are {len(a)} and {len(b)}")
    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    if spread <= 1e-15 * max(1.0, float(np.abs(difference).max(initial=0.0))):
        return math.nan
    from scipy.stats import t

    statistic = float(difference.mean()) / (spread / math.sqrt(len(difference)))
    return float(2.0 * t.sf(abs(statistic), len(difference) - 1))


def stretch_t(a: Floats, b: Floats, ends: Floats) -> float:
    """Return the two-sided p-value of a paired t-test over the stretches of a single stream; NaN if undefined.

    `a` and `b` are means so far at `ends` instances, as stored curves have them; they are turned into the means of each
    stretch, and the last one is left out if it is shorter. The test takes the stretches as independent, so that it is
    too sure where errors come in long runs.
    """
    widths = np.diff(ends, prepend=0.0)
    there = ~(np.isnan(a) | np.isnan(b)) & (widths == widths[0])
    sums = [np.diff(np.nan_to_num(mean) * ends, prepend=0.0) / widths for mean in (a, b)]
    return paired_t(sums[0][there], sums[1][there])


def average_ranks(scores: Floats) -> Floats:
    """Return the mean rank of each method (columns) over data sets (rows); lower scores first, ties share a rank."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(scores, axis=1).mean(axis=0)
    return ranks


def critical_difference(methods: int, sets: int) -> float:
    """Return Nemenyi's critical difference at 5 %: average ranks further apart than this differ."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - ALPHA, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * sets))


@dataclass(frozen=True)
class Ranking:
    """Methods compared over several data sets."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    sets: int
    chi2: float
    p: float
    """p-value of Friedman's test, corrected for ties; NaN for fewer than three methods or two data sets."""
    difference: float
    """Nemenyi's critical difference at 5 %."""

    def nemenyi(self, first: str, second: str) -> float:
        """Return the p-value of Nemenyi's test of two methods."""
        from scipy.stats import studentized_range

        methods = len(self.names)
        gap = abs(self.ranks[self.names.index(first)] - self.ranks[self.names.index(second)])
        statistic = gap * math.sqrt(2) / math.sqrt(methods * (methods + 1) / (6 * self.sets))
        return float(studentized_range.sf(statistic, methods, np.inf))

    def ties(self) -> list[tuple[int, int]]:
        """Return the longest runs of methods (positions in the order of rank) that do not differ."""
        order = np.sort(np.array(self.ranks))
        groups: list[tuple[int, int]] = []
        for i, rank_i in enumerate(order):
            j = int(np.searchsorted(order, rank_i + self.difference, side="right")) - 1
            if j > i and not (groups and groups[-1][1] >= j):
                groups.append((i, j))
        return groups


def rank(names: list[str], scores: Floats) -> Ranking:
    """Compute ranks, Friedman's test and the critical difference; lower scores are better."""
    from scipy.stats import friedmanchisquare

    sets, methods = scores.shape
    chi2 = p = math.nan
    if methods >= 3 and sets >= 2 and np.ptp(scores, axis=1).any():
        chi2, p = (float(v) for v in friedmanchisquare(*scores.T))
    ranks = tuple(average_ranks(scores).tolist())
    return Ranking(tuple(names), ranks, sets, chi2, p, critical_difference(methods, sets))


def win_tie_loss(ours: list[Floats], theirs: list[Floats]) -> tuple[int, int, int]:
    """Count the data sets on which ours is significantly lower, not different, or higher (paired t-test, 5 %)."""
    wins = losses = 0
    for a, b in zip(ours, theirs, strict=True):
        p = paired_t(a, b)
        differs = p < ALPHA or (math.isnan(p) and len(a) > 1 and float(np.mean(a)) != float(np.mean(b)))
        if differs and np.mean(a) < np.mean(b):
            wins += 1
        elif differs and np.mean(a) > np.mean(b):
            losses += 1
    return wins, len(ours) - wins - losses, losses
