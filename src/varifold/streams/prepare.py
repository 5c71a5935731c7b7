"""`prepare`: a fixed data set as a stream that varies, by a permutation and a scenario drawn from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold.errors import DataError, ParameterError
from varifold.streams.scenarios.registry import SCENARIOS
from varifold.streams.scenarios.segment import Segment
from varifold.streams.scenarios.spec import parse
from varifold.streams.stream import Batch, Stream, slices

__all__ = ["Prepared", "check_seed", "derived_seed", "prepare"]


@dataclass(frozen=True)
class Prepared(Stream):
    """A stream of one block in memory.

    `scored_from` is the first row that counts for accuracy (after the switch of ``evolvable``), `delay` the number of
    rows after which each label arrives, `empty` the number of rows without any feature left, `label_share` the share of
    the labels that arrive at all.
    """

    block: Block
    scored_from: int = 0
    delay: int = 0
    empty: int = 0
    label_share: float = 1.0
    label_seed: int = 0

    def batches(self) -> Iterator[Batch]:
        """Yield the block in parts."""
        return slices(self.block)


def prepare(data: Any, scenario: str = "none", *, seed: int = 0, shuffle: bool | None = None) -> Prepared:
    """Permute the rows and let features appear and vanish by a scenario.

    Parameters
    ----------
    data
        A `Block`, or a `Dataset` of `varifold.datasets` (then ``mixed`` converts it as the papers do).
    scenario
        ``name[:value,key=value,...]``, several joined with ``+``, applied from left to right; see `scenarios()`.
        ``balanced`` and ``mixed`` work before the rows are permuted, all others after.
    seed
        The same seed gives the same permutation and the same masks for every learner.
    shuffle
        Whether rows are permuted; False keeps the order of the file. By default they are, except those of a natural
        stream (a `Dataset` that is `ordered`), whose labels are also delayed as in its registry entry.

    Examples
    --------
    >>> from varifold import Block, streams
    >>> block = Block.from_dicts([{"a": 1.0, "b": 2.0}] * 10, list("xy" * 5))
    >>> prepared = streams.prepare(block, "trapezoidal:2", seed=1)
    >>> [len(x) for x in prepared.block.rows()]
    [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]

    """
    if isinstance(data, Block):
        segment = Segment.whole(data)
    elif isinstance(getattr(data, "block", None), Block):
        segment = replace(Segment.whole(data.block, data.conversion), delay=getattr(data, "delay", 0))
    else:
        raise DataError(f"prepare() needs a Block or a Dataset, not {type(data).__name__}; to_block() makes one")
    check_seed(seed)
    steps = list(enumerate(parse(scenario, SCENARIOS)))
    for index, step in steps:
        if step.scenario.before:
            segment = step.scenario.apply(replace(segment, seed=derived_seed(seed, index)), **step.parameters)
    if (not getattr(data, "ordered", False)) if shuffle is None else shuffle:
        order = np.random.default_rng(derived_seed(seed, -1)).permutation(len(segment.block))
        segment = replace(segment, order=order)
    for index, step in steps:
        if not step.scenario.before:
            segment = step.scenario.apply(replace(segment, seed=derived_seed(seed, index)), **step.parameters)
    segment = segment.reordered()
    empty = int(np.count_nonzero(np.diff(segment.block.indptr) == 0))
    return Prepared(segment.block, segment.scored_from, segment.delay, empty, segment.label_share, segment.label_seed)


def check_seed(seed: object) -> None:
    """Raise an error unless the seed is a whole number >= 0."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0. Got {seed!r} instead.")


def derived_seed(seed: int, index: int) -> int:
    """Return the seed of one part of the preparation: scenario number `index`, or -1 for the permutation."""
    return int(np.random.SeedSequence([seed, index + 1]).generate_state(1, np.uint64)[0])
