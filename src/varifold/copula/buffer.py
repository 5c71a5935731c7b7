"""A Gaussian copula over a buffer of rows, fitted by expectation maximisation to convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
RIDGE = 1e-6
LEAST_MASS = 1e-6
LEAST_VARIANCE = 1e-9


@dataclass
class Place:
    """Scores of one row: its present columns, their scores, and the intervals of the ordinal ones."""

    column: NDArray[np.int64]
    score: Floats
    low: Floats
    high: Floats
    ordinal: NDArray[np.bool_]


def truncated(low: Floats, high: Floats, mean: Floats, deviation: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean, variance and mass of normal distributions within intervals."""
    a, b = (low - mean) / deviation, (high - mean) / deviation
    mass = np.where(a < 0, ndtr(b) - ndtr(a), ndtr(-a) - ndtr(-b))
    safe = np.maximum(mass, LEAST_MASS)
    at_a, at_b = (np.exp(-t * t / 2) / np.sqrt(2 * np.pi) for t in (a, b))
    edge_a, edge_b = (np.where(np.isfinite(t), t, 0.0) * p for t, p in ((a, at_a), (b, at_b)))
    shift = (at_a - at_b) / safe
    spread = np.maximum(0.0, 1 + (edge_a - edge_b) / safe - shift * shift)
    return mean + deviation * shift, deviation**2 * spread, mass


class BufferCopula:
    """Estimate marginals and correlation of the rows of a buffer.

    Parameters
    ----------
    levels
        A column with at most this many distinct values so far is ordinal: each value is an interval.
    sweeps
        Rounds of truncated-normal moments in an E-step.
    tolerance, iterations
        EM stops if the correlation changes by at most `tolerance` (Frobenius norm), or after this many iterations.
    c, gamma_min
        The weight of the new moments in the M-steps of fit k is max(gamma_min, c / (k + c)) (eq. 9).

    """

    def __init__(self, levels: int, sweeps: int, tolerance: float, iterations: int, c: float, gamma_min: float) -> None:
        self.levels, self.sweeps = levels, sweeps
        self.tolerance, self.iterations = tolerance, iterations
        self.c, self.gamma_min = c, gamma_min
        self.fits = 0
        self.index: dict[Any, int] = {}
        self.distinct: list[set[float]] = []
        self.sigma: Floats = np.zeros((0, 0))
        self.values: list[Floats] = []

    def admit(self, x: Mapping[Any, float]) -> None:
        """Add new columns, uncorrelated with all others."""
        for name in x:
            if name not in self.index:
                self.index[name] = len(self.index)
                self.distinct.append(set())
                sigma = np.eye(len(self.index))
                sigma[:-1, :-1] = self.sigma
                self.sigma = sigma
        for name, value in x.items():
            if len(self.distinct[self.index[name]]) <= self.levels:
                self.distinct[self.index[name]].add(value)

    def place(self, x: Mapping[Any, float]) -> Place:
        """Compute the scores of a row from the buffer's values (eq. 6 and 7), including a value not yet among them."""
        known = [(self.index[name], value) for name, value in x.items() if name in self.index]
        count = np.zeros((3, len(known)))  # values below, equal, and all
        for i, (at, value) in enumerate(known):
            held = self.values[at] if at < len(self.values) else np.zeros(0)
            lower, upper = int(np.searchsorted(held, value, "left")), int(np.searchsorted(held, value, "right"))
            count[:, i] = [lower, max(upper - lower, 1), len(held) + (upper == lower)]
        below, equal, total = count
        column = np.array([at for at, _ in known], dtype=np.int64)
        ordinal = np.array([len(self.distinct[at]) <= self.levels for at, _ in known], dtype=np.bool_)
        low = np.where(below > 0, ndtri(below / (total + 1)), -np.inf)
        high = np.where(below + equal < total, ndtri((below + equal) / (total + 1)), np.inf)
        score = ndtri((below + equal / 2 + 0.5) / (total + 1))
        start, _, _ = truncated(low, high, np.zeros(len(known)), np.ones(len(known)))
        return Place(column, np.where(ordinal, start, score), low, high, ordinal)

    def expect(self, place: Place) -> tuple[Floats, Floats]:
        """Compute the scores of all columns and their conditional covariance (E-step; eq. 4, 5 and 8)."""
        here, sigma = place.column, self.sigma
        absent = np.ones(len(sigma), dtype=bool)
        absent[here] = False
        gone = np.flatnonzero(absent)
        z, covariance = np.zeros(len(sigma)), np.zeros_like(sigma)
        if not len(here):
            return z, sigma.copy()
        inverse: Floats = np.linalg.inv(sigma[np.ix_(here, here)] + RIDGE * np.eye(len(here))).astype(np.float64)
        score, variance = self._sweep(place, inverse)
        between = sigma[np.ix_(here, gone)]
        slopes = inverse @ between
        shared = slopes.T * variance
        z[here], z[gone] = score, slopes.T @ score
        covariance[here, here] = variance
        covariance[np.ix_(gone, here)] = shared
        covariance[np.ix_(here, gone)] = shared.T
        covariance[np.ix_(gone, gone)] = sigma[np.ix_(gone, gone)] - slopes.T @ between + shared @ slopes
        return z, covariance

    def _sweep(self, place: Place, inverse: Floats) -> tuple[Floats, Floats]:
        """Compute scores and variances of the present columns; ordinal ones given the others, in their intervals."""
        score, variance, at = place.score.copy(), np.zeros(len(place.score)), place.ordinal
        for _ in range(self.sweeps if at.any() else 0):
            square = 1 / np.diag(inverse)
            mean = score - square * (inverse @ score) if len(score) > 1 else np.zeros(1)
            deviation = np.sqrt(square) if len(score) > 1 else np.ones(1)
            scores, spread, mass = truncated(place.low[at], place.high[at], mean[at], deviation[at])
            enough = mass >= LEAST_MASS
            score[at] = np.where(enough, scores, score[at])
            variance[at] = np.where(enough, spread, 0.0)
        return score, variance

    def fit(self, rows: Sequence[Mapping[Any, float]]) -> int:
        """Estimate marginals, then run EM from the current correlation to convergence; return the iterations."""
        values: list[list[float]] = [[] for _ in self.index]
        for row in rows:
            for name, value in row.items():
                values[self.index[name]].append(value)
        self.values = [np.sort(np.array(held)) for held in values]
        places = [self.place(row) for row in rows]
        gamma = max(self.gamma_min, self.c / (self.fits + self.c) if self.c > 0 else 0.0)
        self.fits += 1
        for iteration in range(1, self.iterations + 1):
            before, moment = self.sigma, np.zeros_like(self.sigma)
            for place in places:
                z, covariance = self.expect(place)
                moment += (np.outer(z, z) + covariance) / len(places)
            mixed = (1 - gamma) * before + gamma * moment
            scale = 1 / np.sqrt(np.maximum(np.diag(mixed), LEAST_VARIANCE))
            self.sigma = mixed * np.outer(scale, scale)
            if np.linalg.norm(self.sigma - before) <= self.tolerance:
                return iteration
        return self.iterations
