"""From a fixed data set to a stream that varies: one permutation, then the scenario, all from one seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varifold._engine.block import Block
from varifold.errors import DataError, ParameterError
from varifold.streams.scenarios.registry import SCENARIOS
from varifold.streams.scenarios.spec import parse
from varifold.streams.scenarios.state import State

__all__ = ["Prepared", "derived_seed", "prepare"]


@dataclass(frozen=True)
class Prepared:
    """A stream ready to be learned.

    `scored_from` is the first row that counts for accuracy (after the switch of ``evolvable``), `delay` by how many
    rows a label comes late, `empty` how many rows have no feature left.
    """

    block: Block
    scored_from: int = 0
    delay: int = 0
    empty: int = 0


def prepare(data: Any, scenario: str = "none", *, seed: int = 0, shuffle: bool = True) -> Prepared:
    """Permute the rows and let features come and go as the scenario says.

    Parameters
    ----------
    data
        A `Block`, or a `Dataset` of `varifold.datasets` (then ``mixed`` knows how the papers convert that set).
    scenario
        ``name[:value,key=value,...]``, several joined with ``+``, applied from left to right; see `scenarios()`.
        ``balanced`` and ``mixed`` work before the rows are permuted, all others after.
    seed
        The same seed gives the same permutation and the same masks, whatever learner comes after.
    shuffle
        Whether rows are permuted; False keeps the order of the file.

    Examples
    --------
    >>> from varifold import Block, streams
    >>> block = Block.from_dicts([{"a": 1.0, "b": 2.0}] * 10, list("xy" * 5))
    >>> prepared = streams.prepare(block, "trapezoidal:2", seed=1)
    >>> [len(x) for x in prepared.block.rows()]
    [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]

    """
    if isinstance(data, Block):
        state = State.of(data)
    elif isinstance(getattr(data, "block", None), Block):
        state = State.of(data.block, data.conversion)
    else:
        raise DataError(f"prepare() takes a Block or a Dataset, not {type(data).__name__}; to_block() makes one")
    if seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0. Got {seed} instead.")
    steps = list(enumerate(parse(scenario, SCENARIOS)))
    for index, step in steps:
        if step.scenario.before:
            state = step.scenario.apply(replace(state, seed=derived_seed(seed, index)), **step.parameters)
    if shuffle:
        order = np.random.default_rng(derived_seed(seed, -1)).permutation(len(state.block))
        state = replace(state, order=order)
    for index, step in steps:
        if not step.scenario.before:
            state = step.scenario.apply(replace(state, seed=derived_seed(seed, index)), **step.parameters)
    state = state.settled()
    empty = int(np.count_nonzero(np.diff(state.block.indptr) == 0))
    return Prepared(state.block, state.scored_from, state.delay, empty)


def derived_seed(seed: int, index: int) -> int:
    """A seed of its own for each part of the preparation."""
    return int(np.random.SeedSequence([seed, index + 1]).generate_state(1, np.uint64)[0])
