"""Test whether the values of one column still follow the distribution of its past.

Each value gets a conformal p-value u: the share of earlier values below it, ties broken at random. As long as values
are exchangeable, u is uniform. Bets on u being high, low, central or extreme then keep an expected wealth of 1; the
wealth restarts at 1 whenever it falls below (a CUSUM of e-values), so that the expected number of tests until a false
alarm is at least the threshold. Absent values take no part.

Neighbouring values of a sensor resemble each other, which would be mistaken for drift. So only some values are tested,
one in `spacing`, chosen by a hash, such that the correlation left between those tested is about a twentieth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alarm", "Distribution", "Floats", "uniform"]

Floats = NDArray[np.float64]

WARM_UP = 256
"""Values from which the bins are made."""
BINS = 32
_START = 100
"""Tested values in the bins before the first bet."""
_STAKES = np.array([-0.9, -0.6, -0.3, 0.3, 0.6, 0.9])
_JUMP = 0.02
_SPACING = 400
_RECENT = 64
LEVELS = np.linspace(0.1, 0.9, 17)
"""Levels of the quantiles by which two distributions are compared; by the time of an alarm the tails are mixed."""


@dataclass(frozen=True)
class Alarm:
    """A change of distribution: the step at which it began, its direction, quantiles before, recent values after.

    `shares` holds the share of each frequent value before.
    """

    step: int
    direction: str
    before: Floats
    after: Floats
    shares: dict[float, float]


def uniform(steps: NDArray[np.int64], seed: int) -> Floats:
    """Return numbers in [0, 1), a hash of each step (splitmix64)."""
    with np.errstate(over="ignore"):
        z = steps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Distribution:
    """Past of a column's values in bins, and the wealth of bets against it.

    `threshold` is the number of updates that pass, in expectation, before a false alarm. `offset`, in [0, 1), makes the
    draws of this column differ from those of others.
    """

    def __init__(self, threshold: float, offset: float) -> None:
        self.threshold = threshold
        self.offset = offset
        self.spacing = 1
        self._clear()

    def _clear(self) -> None:
        self._warm: list[float] = []
        self._edges: Floats | None = None
        self._counts: Floats = np.zeros(0)
        self._wealth: Floats = np.ones((2, len(_STAKES)))
        self._since = 0
        self._recent: list[float] = []

    @property
    def ready(self) -> bool:
        """Whether the bins are made."""
        return self._edges is not None

    def update(self, steps: NDArray[np.int64], draws: Floats, values: Floats) -> Alarm | None:
        """Test and add the values of some steps, in order; return an alarm if they no longer follow the past.

        `draws` holds two uniform numbers per step: whether a value is tested, and how a tie is broken.
        """
        if self._edges is None:
            self._warm.extend(values.tolist())
            self._since = int(steps[-1])
            if len(self._warm) >= WARM_UP:
                self._make_bins()
            return None
        self._recent = [*self._recent, *values.tolist()][-_RECENT:]
        jumped = self._jumped()
        if self.spacing == 1:
            self._bet(steps, draws[1], values)
        else:
            tested = (draws[0] + self.offset) % 1.0 * self.spacing < 1.0
            if tested.any():
                self._bet(steps[tested], draws[1][tested], values[tested])
        wealth = self._wealth.sum() / self._wealth.size
        if wealth < self.threshold and not jumped:
            if wealth < 1.0:
                self._wealth[:] = wealth = 1.0
                self._since = int(steps[-1])
            self._wealth += _JUMP * (wealth - self._wealth)
            return None
        direction = "out of range" if jumped else self._direction()
        alarm = Alarm(self._since, direction, self.quantiles(), np.array(self._recent), self._shares())
        self._clear()
        return alarm

    def _make_bins(self) -> None:
        warm = np.array(self._warm)
        self._edges = np.unique(np.quantile(warm, np.linspace(0.0, 1.0, BINS + 1), method="inverted_cdf"))
        self.spacing = _spacing(warm)
        self._counts = np.zeros(2 * len(self._edges) + 1)
        np.add.at(self._counts, self._bin(warm[:: self.spacing]), 1.0)
        self._recent = self._warm[-_RECENT:]
        self._warm = []

    def _bin(self, values: Floats) -> NDArray[np.intp]:
        """Return bins: even between two edges, odd for a value equal to an edge, so that ties have their own."""
        assert self._edges is not None
        return np.searchsorted(self._edges, values, "left") + np.searchsorted(self._edges, values, "right")

    def _bet(self, steps: NDArray[np.int64], ties: Floats, values: Floats) -> None:
        bins = self._bin(values)
        below = self._counts.cumsum()
        total = below[-1]
        if total >= _START:
            equal = self._counts[bins]
            u = (below[bins] - equal + (ties + self.offset) % 1.0 * (equal + 1.0)) / (total + 1.0)
            bets = np.stack([2.0 * u - 1.0, 4.0 * np.abs(u - 0.5) - 1.0])
            gains = np.log1p(_STAKES[:, None] * bets[:, None, :]).sum(axis=2)
            self._wealth = np.minimum(self._wealth * np.exp(np.minimum(gains, 100.0)), 1e100)
        else:
            self._since = int(steps[-1])
        np.add.at(self._counts, bins, 1.0)

    def _jumped(self) -> bool:
        """Return whether the last 16 values lie far outside everything seen, on one side: a jump needs no test."""
        last = self._recent[-16:]
        assert self._edges is not None
        low, high = self._edges[0], self._edges[-1]
        margin = 3.0 * (high - low)
        if margin <= 0.0 or len(last) < 16:
            return False
        return bool(min(last) > high + margin or max(last) < low - margin)

    def _direction(self) -> str:
        row, column = np.unravel_index(int(self._wealth.argmax()), self._wealth.shape)
        up = _STAKES[column] > 0
        return ("higher" if up else "lower") if row == 0 else ("wider" if up else "narrower")

    def quantiles(self) -> Floats:
        """Return the quantiles of the past at `LEVELS`, to the accuracy of the bins."""
        if self._edges is None:
            return np.quantile(np.array(self._warm), LEVELS) if self._warm else np.zeros(0)
        share = np.cumsum(self._counts) / max(1.0, self._counts.sum())
        # the distribution function at each edge, ties included
        at_edges = np.maximum.accumulate(share[1::2])
        return np.interp(LEVELS, at_edges, self._edges)

    def _shares(self) -> dict[float, float]:
        """Return the share of each value that has a bin of its own."""
        assert self._edges is not None
        shares = self._counts[1::2] / max(1.0, self._counts.sum())
        return dict(zip(self._edges.tolist(), shares.tolist(), strict=True))

    def dump(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "warm": self._warm,
            "edges": None if self._edges is None else self._edges.tolist(),
            "counts": self._counts.tolist(),
            "wealth": self._wealth.tolist(),
            "since": self._since,
            "recent": self._recent,
            "spacing": self.spacing,
        }

    def fill(self, saved: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        self._warm, self._since, self._recent = saved["warm"], saved["since"], saved["recent"]
        self._edges = None if saved["edges"] is None else np.array(saved["edges"])
        self._counts, self._wealth = np.array(saved["counts"]), np.array(saved["wealth"])
        self.spacing = saved["spacing"]


def _spacing(values: Floats) -> int:
    """Return the distance at which the ranks of consecutive values hardly correlate, from their lag-1 correlation."""
    ranks = np.searchsorted(np.sort(values), values, "left").astype(float)  # equal values, equal ranks
    ranks -= ranks.mean()
    power = float(ranks @ ranks)
    if power == 0.0:
        return 1
    correlation = float(ranks[1:] @ ranks[:-1]) / power
    if correlation < 0.15:
        return 1
    # if correlation ** d is the correlation at distance d, it is .05 at this distance
    return min(_SPACING, math.ceil(math.log(0.05) / math.log(min(correlation, 0.995))))
