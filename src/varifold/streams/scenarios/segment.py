"""Input and output of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold.streams.scenarios._apply_mask import masked
from varifold.streams.scenarios._masks import Mask
from varifold.streams.scenarios.columns import Columns

__all__ = ["MOST_PHASES", "Segment", "median_of"]

MOST_PHASES = 1_000_000
"""Most parts with different columns in a stream under a scenario."""


@dataclass(frozen=True)
class Segment:
    """A segment of a stream, which scenarios change one after the other; the whole stream if it is in memory.

    `columns` and `rows` (their number) are those of the whole stream; the segment begins at row `start`. `order` is the
    permutation still to be applied to the block's rows; a mask applies it on the way. `seed` is that of the current
    scenario, `conversion` the registry entry's setting for ``mixed``; `median` is that of all numbers to
    predict, NaN where labels are predicted.
    """

    block: Block
    columns: Columns
    rows: int
    start: int = 0
    order: np.ndarray[Any, Any] | None = None
    seed: int = 0
    scored_from: int = 0
    delay: int = 0
    label_share: float = 1.0
    label_seed: int = 0
    conversion: str | None = None
    median: float = float("nan")

    @classmethod
    def whole(cls, block: Block, conversion: str | None = None) -> Segment:
        """Make a segment of a block that is the whole stream."""
        return cls(block, Columns(block), len(block), conversion=conversion, median=median_of([block.targets]))

    def with_block(self, block: Block) -> Segment:
        """Replace the block by another one that is the whole stream."""
        median = median_of([block.targets])
        return replace(self, block=block, columns=Columns(block), rows=len(block), order=None, median=median)

    def masked(self, mask: Mask) -> Segment:
        """Keep only the cells that the mask shows."""
        return replace(self, block=masked(self.block, mask, self.columns, self.order, self.start), order=None)

    def reordered(self) -> Segment:
        """Put the rows in their final order."""
        return self if self.order is None else replace(self, block=self.block.take(self.order), order=None)

    @cached_property
    def row_numbers(self) -> np.ndarray[Any, Any]:
        """Return the numbers of the segment's rows in the stream."""
        return np.arange(self.start, self.start + len(self.block), dtype=np.int64)

    @property
    def codes(self) -> np.ndarray[Any, Any]:
        """Return the label codes, in the order of the stream."""
        codes: np.ndarray[Any, Any] = self.block.codes
        return codes if self.order is None else codes[self.order]

    @property
    def upper(self) -> np.ndarray[Any, Any]:
        """Return which rows, in stream order, have a label other than the first, or a target above the median."""
        if self.block.targets is None:
            return self.codes > 0
        above: np.ndarray[Any, Any] = self.block.targets > self.median
        return above if self.order is None else above[self.order]


def median_of(targets: Iterable[np.ndarray[Any, Any] | None]) -> float:
    """Return the median of the targets of several blocks; NaN without any."""
    parts = [part[~np.isnan(part)] for part in targets if part is not None]
    found = np.concatenate(parts) if parts else np.zeros(0)
    return float(np.median(found)) if len(found) else float("nan")
