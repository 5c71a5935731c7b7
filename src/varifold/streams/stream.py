"""What the library calls a stream: blocks that come one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold._engine.block import Block, concatenate

__all__ = ["Batch", "Stream", "batches_of"]


class Stream(ABC):
    """Instances on their way to a learner: blocks over one vocabulary and one table of labels.

    There are three kinds: what `read` finds in files and frames, what `prepare` makes of a data set in memory, and what
    `vary` makes of a stream while it is read.

    Attributes
    ----------
    scored_from
        The first row that counts for accuracy; later than 0 where a scenario switches to another feature space.
    delay
        How many rows after its own each label arrives.
    once
        Whether the source can be read only once.

    """

    scored_from: int = 0
    delay: int = 0
    once: bool = False

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The blocks, in order, from the beginning."""

    def __iter__(self) -> Iterator[tuple[dict[str | int, Any], Any]]:
        """Pairs (x, y), as river's streams give them; y is None where there is no label."""
        for block in self.blocks():
            yield from zip(block.rows(), block.y, strict=True)

    def batches(self) -> Iterator[Batch]:
        """The blocks with what else belongs to their rows: ids and times, where the stream has them."""
        return map(Batch, self.blocks())


def batches_of(stream: Any) -> Iterator[Batch]:
    """The batches of a stream, or of anything else that has blocks."""
    return stream.batches() if hasattr(stream, "batches") else map(Batch, stream.blocks())


@dataclass(frozen=True)
class Batch:
    """Consecutive instances: a block, and what belongs to its rows (None where the stream has no such thing).

    `ids` and `times` are columns of the source that are no features; `rows` are the instances as they were given, for
    learners that take dicts.
    """

    block: Block
    ids: list[Any] | None = None
    times: list[Any] | None = None
    rows: list[Mapping[Any, Any]] | None = None

    def take(self, positions: np.ndarray[Any, Any]) -> Batch:
        """The instances at these positions."""
        chosen = positions.tolist()
        return Batch(self.block.take(positions), *(p and [p[i] for i in chosen] for p in self._lists()))

    def part(self, lo: int, hi: int) -> Batch:
        """The instances from lo up to, but not including, hi."""
        return Batch(self.block[lo:hi], *(p and p[lo:hi] for p in self._lists()))

    def after(self, earlier: Batch) -> Batch:
        """These instances behind earlier ones of the same stream."""
        pairs = zip(earlier._lists(), self._lists(), strict=True)
        lists = (None if a is None or b is None else [*a, *b] for a, b in pairs)
        return Batch(concatenate([earlier.block, self.block]), *lists)

    def _lists(self) -> tuple[list[Any] | None, ...]:
        return self.ids, self.times, self.rows
