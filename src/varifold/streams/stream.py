"""Streams: sequences of batches of instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold._engine.data.block import Block, concatenate

__all__ = ["BLOCK_CELLS", "BLOCK_ROWS", "Batch", "Stream", "batches_of", "slices"]

BLOCK_ROWS = 16_384
"""Maximum number of rows of a batch. A stream is split into batches once, when it is read."""
BLOCK_CELLS = 1 << 18
"""Maximum number of cells of a batch that a reader makes, so that it fits in the processor's cache."""


class Stream(ABC):
    """Sequence of batches that share one vocabulary and one table of labels.

    There are three kinds: `read` makes one from files and frames, `prepare` from a data set in memory, `vary` from
    another stream while it is read.

    Attributes
    ----------
    scored_from
        The first row that counts for accuracy; later than 0 where a scenario switches to another feature space.
    delay
        Number of rows after which each label arrives.
    label_share, label_seed
        Share of the labels that arrive at all, drawn with this seed.
    once
        Whether the source can be read only once.
    key
        A feature that every row has, such as that of `PerKey`; no scenario hides it.

    """

    scored_from: int = 0
    delay: int = 0
    label_share: float = 1.0
    label_seed: int = 0
    once: bool = False
    key: str | None = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield the batches, in order, from the beginning."""

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the batches."""
        return (batch.block for batch in self.batches())

    def __iter__(self) -> Iterator[tuple[dict[str | int, Any], Any]]:
        """Yield pairs (x, y) as river's streams do; y is None where there is no label."""
        for block in self.blocks():
            yield from zip(block.rows(), block.y, strict=True)


@dataclass(frozen=True)
class Batch:
    """Consecutive instances: a block and the ids, times and originals of its rows (None if the stream has none).

    `ids` and `times` are columns of the source that are not features; `rows` are the original instances, for learners
    that accept dicts only.
    """

    block: Block
    ids: list[Any] | None = None
    times: list[Any] | None = None
    rows: list[Mapping[Any, Any]] | None = None

    def take(self, positions: np.ndarray[Any, Any]) -> Batch:
        """Return the instances at these positions."""
        chosen = positions.tolist()
        return Batch(self.block.take(positions), *(p and [p[i] for i in chosen] for p in self._lists()))

    def part(self, lo: int, hi: int) -> Batch:
        """Return the instances from lo up to, but not including, hi."""
        return Batch(self.block[lo:hi], *(p and p[lo:hi] for p in self._lists()))

    def after(self, earlier: Batch) -> Batch:
        """Return earlier instances of the same stream followed by these."""
        pairs = zip(earlier._lists(), self._lists(), strict=True)
        lists = (None if a is None or b is None else [*a, *b] for a, b in pairs)
        return Batch(concatenate([earlier.block, self.block]), *lists)

    def _lists(self) -> tuple[list[Any] | None, ...]:
        return self.ids, self.times, self.rows


def slices(block: Block) -> Iterator[Batch]:
    """Cut a block in memory into batches."""
    return (Batch(block[lo : lo + BLOCK_ROWS]) for lo in range(0, len(block), BLOCK_ROWS))


def batches_of(stream: Any) -> Iterator[Batch] | None:
    """Return the batches of a stream, a block, or an object that holds a block or yields blocks; None for others."""
    if isinstance(stream, Block):
        return slices(stream)
    if hasattr(stream, "batches"):
        batches: Iterator[Batch] = stream.batches()
        return batches
    if isinstance(getattr(stream, "block", None), Block):
        return slices(stream.block)
    return map(Batch, stream.blocks()) if hasattr(stream, "blocks") else None
