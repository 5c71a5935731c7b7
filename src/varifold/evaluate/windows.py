"""Points of a curve over a stream whose length may be unknown: windows that are merged in pairs as it grows."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from varifold.base import Block
from varifold.evaluate.metrics import Bools, Floats, Ints
from varifold.evaluate.result import Band, Curve, RegressionCurve
from varifold.streams.scenarios._apply_mask import occurring

Bits = np.ndarray[Any, np.dtype[np.uint8]]
Number = TypeVar("Number", int, float)
_FIRST_WIDTH = 8


class Windows:
    """Consecutive windows of equal width; each holds errors, instances scored, losses, cells and the features present.

    With a known length there are `points` of them. Otherwise the width starts small and doubles whenever there are
    twice as many, so that memory stays bounded.
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
        self.losses: list[float] = []
        self.rated: list[int] = []
        self.present: list[Bits] = []
        self.columns: Ints = np.zeros(0, dtype=np.int32)
        self.snapshots: list[dict[Any, float]] = []

    def room(self) -> int:
        """Instances up to the end of the current window."""
        return self.width - self.end % self.width

    def add(self, block: Block, wrong: Bools, scored: Bools, losses: Floats) -> None:
        """Account for the next instances of the stream; a loss is NaN where there was no probability."""
        lo, n = 0, len(block)
        rated = ~np.isnan(losses)
        errors = wrong & scored
        while lo < n:
            hi = min(n, lo + self.room())
            loss = float(losses[lo:hi][rated[lo:hi]].sum())
            counts = (int(np.count_nonzero(part[lo:hi])) for part in (errors, scored, rated))
            sums = (next(counts), next(counts), loss, next(counts))
            self._add(block[lo:hi], sums)
            lo = hi

    def _add(self, block: Block, sums: tuple[float, int, float, int]) -> None:
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
                part[-1] += value
            self.present[-1] = _either(self.present[-1], present)
        self.end += len(block)
        self.ends[-1] = self.end
        if self.grows and self.end == 2 * self.points * self.width:
            self._merge()

    def _merge(self) -> None:
        """Join windows in pairs."""
        self.ends = self.ends[1::2]
        self.scored, self.cells, self.rated = map(_in_pairs, (self.scored, self.cells, self.rated))
        self.errors, self.losses = _in_pairs(self.errors), _in_pairs(self.losses)
        self.present = [_either(a, b) for a, b in zip(self.present[::2], self.present[1::2], strict=True)]
        self.snapshots = self.snapshots[1::2]
        self.width *= 2

    def snapshot(self, importances: dict[Any, float]) -> None:
        """Keep the importances at the end of the last window; replaced while the window is open."""
        if len(self.snapshots) == len(self.ends):
            self.snapshots.pop()
        self.snapshots.append(importances)

    def seen(self, size: int) -> Bools:
        """Which of the vocabulary's ids, up to `size`, have been seen."""
        if not self.present:
            return np.zeros(size, dtype=bool)
        return np.unpackbits(self._seen()[-1], count=size).astype(bool)

    def _seen(self) -> list[Bits]:
        """For each window, the features seen up to its end."""
        seen: list[Bits] = []
        for bits in self.present:
            seen.append(bits if not seen else _either(seen[-1], bits))
        return seen

    def curve(self) -> Curve:
        """The curve at the ends of the windows."""
        errors, scored, losses, rated = self._sums()
        return Curve(
            cer=_share(errors.cumsum(), scored.cumsum()),
            window_cer=_share(errors, scored),
            log_loss=_share(losses.cumsum(), rated.cumsum()),
            window_log_loss=_share(losses, rated),
            **self._features(),
        )

    def _sums(self) -> tuple[Floats, ...]:
        """By window: errors, instances scored, losses, instances with a loss."""
        return tuple(np.array(part, dtype=np.float64) for part in (self.errors, self.scored, self.losses, self.rated))

    def _features(self) -> dict[str, Any]:
        """What every curve has: the ends of the windows, the features in them and their importances."""
        ends = np.array(self.ends, dtype=np.int64)
        return {
            "at": ends,
            "present": np.array(self.cells, dtype=np.float64) / np.maximum(np.diff(ends, prepend=0), 1),
            "alive": np.array([_count(bits) for bits in self.present], dtype=np.int64),
            "columns": np.array([_columns(bits, self.columns) for bits in self.present], dtype=np.int64),
            "known": np.array([_count(bits) for bits in self._seen()], dtype=np.int64),
            "importances": list(self.snapshots),
        }


class RegressionWindows(Windows):
    """The same for a regressor: errors are absolute errors, losses squared ones; and intervals, if there are any."""

    def __init__(self, points: int, length: int | None) -> None:
        super().__init__(points, length)
        self.bands: list[Floats] = []

    def add_errors(self, block: Block, errors: Floats, scored: Bools, bounds: Floats | None = None) -> None:
        """Account for the next instances of the stream; `bounds` are low and high less the prediction."""
        lo, n = 0, len(block)
        while lo < n:
            hi = min(n, lo + self.room())
            part = errors[lo:hi][scored[lo:hi]]
            if bounds is not None:
                self._add_band(part, bounds[lo:hi][scored[lo:hi]])
            self._add(block[lo:hi], (float(np.abs(part).sum()), len(part), float(np.square(part).sum()), len(part)))
            lo = hi

    def _add_band(self, errors: Floats, bounds: Floats) -> None:
        finite = np.isfinite(bounds).all(axis=1)
        errors, bounds = errors[finite], bounds[finite]
        covered = (bounds[:, 0] <= errors) & (errors <= bounds[:, 1])
        sums = np.array([len(errors), bounds[:, 0].sum(), bounds[:, 1].sum(), covered.sum()])
        if self.end % self.width == 0:
            self.bands.append(sums)
        else:
            self.bands[-1] = self.bands[-1] + sums

    def _merge(self) -> None:
        super()._merge()
        if self.bands:
            self.bands = [a + b for a, b in zip(self.bands[::2], self.bands[1::2], strict=True)]

    def _band(self) -> Band | None:
        if not self.bands:
            return None
        count, low, high, covered = np.array(self.bands).T
        return Band(low=_share(low, count), high=_share(high, count), covered=_share(covered, count))

    def regression_curve(self) -> RegressionCurve:
        """The curve at the ends of the windows."""
        errors, scored, losses, _ = self._sums()
        return RegressionCurve(
            mae=_share(errors.cumsum(), scored.cumsum()),
            window_mae=_share(errors, scored),
            rmse=np.sqrt(_share(losses.cumsum(), scored.cumsum())),
            window_rmse=np.sqrt(_share(losses, scored)),
            band=self._band(),
            **self._features(),
        )


def _columns(bits: Bits, columns: Ints) -> int:
    """How many columns the ids belong to whose bits are set."""
    there = np.flatnonzero(np.unpackbits(bits)[: len(columns)])
    return int(np.count_nonzero(np.bincount(columns[there])))


def _in_pairs(values: list[Number]) -> list[Number]:
    return [a + b for a, b in zip(values[::2], values[1::2], strict=True)]


def _share(part: Floats, whole: Floats) -> Floats:
    share = np.full(len(part), np.nan)
    np.divide(part, whole, out=share, where=whole > 0)
    return share


def _either(a: Bits, b: Bits) -> Bits:
    """Bits set in one or the other; the vocabulary may have grown between them."""
    if len(a) > len(b):
        a, b = b, a
    joined = b.copy()
    joined[: len(a)] |= a
    return joined


def _count(bits: Bits) -> int:
    return int(np.bitwise_count(bits).sum())
