"""Points of a curve over a stream of known or unknown length: windows that are merged in pairs as it grows."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from varifold.base import Block
from varifold.evaluate.metrics import Bools, Floats, Ints
from varifold.evaluate.result import Band
from varifold.streams.scenarios._apply_mask import occurring

__all__ = ["Windows", "running_mean", "share"]

Bits = np.ndarray[Any, np.dtype[np.uint8]]
Number = TypeVar("Number", int, float)
_FIRST_WIDTH = 8


class Windows:
    """Consecutive windows of equal width, with sums over their instances and the features present in them.

    A window has the sum of the errors (wrong labels or absolute errors) and of the losses (of labels, one column per
    loss; squared errors). If the length is known there are `points` windows. Otherwise the width starts small and
    doubles whenever there are twice as many, so that memory stays bounded.
    """

    def __init__(self, points: int, length: int | None) -> None:
        self.points = points
        self.grows = length is None
        self.width = _FIRST_WIDTH if length is None else max(1, -(-length // points))
        self.end = 0
        self.ends: list[int] = []
        self.errors: list[float] = []
        self.scored: list[int] = []
        self.cells: list[int] = []
        self.losses: list[Any] = []
        self.rated: list[int] = []
        self.present: list[Bits] = []
        self.bands: list[Floats] = []
        self.columns: Ints = np.zeros(0, dtype=np.int32)
        self.snapshots: list[dict[Any, float]] = []

    def remaining(self) -> int:
        """Return the number of instances up to the end of the current window."""
        return self.width - self.end % self.width

    def add(self, block: Block, errors: Any, losses: Floats, scored: Bools, band: Floats | None = None) -> None:
        """Add the next instances of the stream.

        `errors` count where an instance is scored, `losses` where they are not NaN. `band` has three columns: the
        error, and the lower and upper bound relative to the prediction.
        """
        lo, n = 0, len(block)
        rated = ~np.isnan(losses if losses.ndim == 1 else losses[:, 0])
        while lo < n:
            hi = min(n, lo + self.remaining())
            counted, with_loss = scored[lo:hi], rated[lo:hi]
            if band is not None:
                self._add_band(band[lo:hi][counted])
            self._add(
                block[lo:hi],
                errors[lo:hi][counted].sum().item(),
                int(np.count_nonzero(counted)),
                losses[lo:hi][with_loss].sum(axis=0),
                int(np.count_nonzero(with_loss)),
            )
            lo = hi

    def _add(self, block: Block, *sums: Any) -> None:
        if len(self.columns) < block.vocabulary.size:
            self.columns = block.vocabulary.column_array()
        present = np.packbits(occurring(block, block.vocabulary.size))
        parts: tuple[list[Any], ...] = (self.ends, self.errors, self.scored, self.losses, self.rated, self.cells)
        values = (0, *sums, len(block.indices))
        if self.end % self.width == 0:
            for part, value in zip(parts, values, strict=True):
                part.append(value)
            self.present.append(present)
        else:
            for part, value in zip(parts, values, strict=True):
                part[-1] = part[-1] + value
            self.present[-1] = _either(self.present[-1], present)
        self.end += len(block)
        self.ends[-1] = self.end
        if self.grows and self.end == 2 * self.points * self.width:
            self._merge()

    def _add_band(self, band: Floats) -> None:
        errors, low, high = band[np.isfinite(band[:, 1:]).all(axis=1)].T
        covered = (low <= errors) & (errors <= high)
        sums = np.array([len(errors), low.sum(), high.sum(), covered.sum()])
        if self.end % self.width == 0:
            self.bands.append(sums)
        else:
            self.bands[-1] = self.bands[-1] + sums

    def _merge(self) -> None:
        """Merge windows in pairs."""
        self.ends = self.ends[1::2]
        self.scored, self.cells, self.rated = map(_in_pairs, (self.scored, self.cells, self.rated))
        self.errors, self.losses = _in_pairs(self.errors), _in_pairs(self.losses)
        self.present = [_either(a, b) for a, b in zip(self.present[::2], self.present[1::2], strict=True)]
        self.bands = [a + b for a, b in zip(self.bands[::2], self.bands[1::2], strict=True)]
        self.snapshots = self.snapshots[1::2]
        self.width *= 2

    def snapshot(self, importances: dict[Any, float]) -> None:
        """Keep the importances at the end of the last window; they are replaced while the window is open."""
        if len(self.snapshots) == len(self.ends):
            self.snapshots.pop()
        self.snapshots.append(importances)

    def seen(self, size: int) -> Bools:
        """Return which of the vocabulary's ids, up to `size`, have occurred."""
        if not self.present:
            return np.zeros(size, dtype=bool)
        return np.unpackbits(self._seen()[-1], count=size).astype(bool)

    def _seen(self) -> list[Bits]:
        """Return, for each window, the features seen up to its end."""
        seen: list[Bits] = []
        for bits in self.present:
            seen.append(bits if not seen else _either(seen[-1], bits))
        return seen

    def sums(self) -> tuple[Floats, ...]:
        """Return, by window: errors, instances scored, losses, instances with a loss."""
        return tuple(np.array(part, dtype=np.float64) for part in (self.errors, self.scored, self.losses, self.rated))

    def band(self) -> Band | None:
        """Return the mean intervals by window."""
        if not self.bands:
            return None
        count, low, high, covered = np.array(self.bands).T
        return Band(low=share(low, count), high=share(high, count), covered=share(covered, count))

    def features(self) -> dict[str, Any]:
        """Return the columns of every curve: the ends of the windows, their features and importances."""
        ends = np.array(self.ends, dtype=np.int64)
        return {
            "at": ends,
            "present": np.array(self.cells, dtype=np.float64) / np.maximum(np.diff(ends, prepend=0), 1),
            "alive": np.array([_count(bits) for bits in self.present], dtype=np.int64),
            "columns": np.array([_columns(bits, self.columns) for bits in self.present], dtype=np.int64),
            "known": np.array([_count(bits) for bits in self._seen()], dtype=np.int64),
            "importances": list(self.snapshots),
        }


def share(part: Floats, whole: Floats) -> Floats:
    """Divide sums by counts; NaN where the count is 0."""
    quotient = np.full(len(part), np.nan)
    np.divide(part, whole, out=quotient, where=whole > 0)
    return quotient


def running_mean(sums: Floats, counts: Floats) -> Floats:
    """Return the mean over all windows up to each."""
    return share(sums.cumsum(), counts.cumsum())


def _columns(bits: Bits, columns: Ints) -> int:
    """Count the columns of the ids whose bits are set."""
    there = np.flatnonzero(np.unpackbits(bits)[: len(columns)])
    return int(np.count_nonzero(np.bincount(columns[there])))


def _in_pairs(values: list[Number]) -> list[Number]:
    return [a + b for a, b in zip(values[::2], values[1::2], strict=True)]


def _either(a: Bits, b: Bits) -> Bits:
    """Return the bits set in one or the other; the vocabulary may have grown between them."""
    if len(a) > len(b):
        a, b = b, a
    joined = b.copy()
    joined[: len(a)] |= a
    return joined


def _count(bits: Bits) -> int:
    return int(np.bitwise_count(bits).sum())
