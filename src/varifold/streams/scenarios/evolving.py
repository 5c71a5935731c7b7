"""Stream of FESL, PAFE and CWFE: one feature space replaces another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.assemble import assemble
from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Vocabulary
from varifold.errors import DataError, ParameterError
from varifold.streams.scenarios.columns import Columns
from varifold.streams.scenarios.segment import Segment

__all__ = ["evolvable"]

Floats = NDArray[np.float64]


SCALINGS = ("unit", "symmetric", "standard")


def evolvable(
    segment: Segment, overlap: int = 10, ratio: float = 0.7, show: str = "both", scaling: str = "unit"
) -> Segment:
    """Replace, after half of the stream, all columns by others that are linear in them.

    As in FESL and CWFE. String columns become integer codes in alphabetical order, rows with empty cells are dropped
    and every column is scaled over the whole set (which looks ahead, and is part of the generator): to [0, 1], with
    ``scaling=symmetric`` to [-1, 1], with ``scaling=standard`` to mean 0 and deviation 1. The papers name none. The new
    space is X R with standard normal R and floor(ratio d) columns ``new1``, ``new2``, ...; in the last `overlap` rows
    of the first half both spaces are there; ``show=new`` hides the old one altogether. Only rows after the switch count
    (`scored_from`). The authors' second spaces are no longer public; R comes from the seed here.
    """
    if overlap < 0:
        raise ParameterError(f"overlap must be a whole number >= 0. Got {overlap} instead.")
    if show not in ("both", "new"):
        raise ParameterError(f"show must be one of both, new. Got {show!r} instead.")
    if scaling not in SCALINGS:
        raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}. Got {scaling!r} instead.")
    if not 0 < ratio <= 1:
        raise ParameterError(f"ratio must be a share above 0 and at most 1. Got {ratio} instead.")
    columns = Columns(segment.reordered().block)
    table = columns.dense()
    complete = ~np.isnan(table).any(axis=1)
    table = table[complete]
    n, width = table.shape
    if n < 2 or width == 0:
        raise DataError(f"evolvable needs two complete rows or more; the set has {n} of them in {len(complete)} rows")
    first = _scaled(table, scaling)
    new = first @ np.random.default_rng(segment.seed).standard_normal((width, max(1, int(ratio * width + 1e-9))))
    switch = n // 2
    first[switch if show == "both" else 0 :] = np.nan
    new[: max(0, switch - overlap)] = np.nan
    vocabulary = Vocabulary()
    cells = [(vocabulary.add(name), first[:, j]) for j, name in enumerate(columns.names)]
    cells += [(vocabulary.add(f"new{j + 1}"), new[:, j]) for j in range(new.shape[1])]
    block, weights, targets = columns.block, columns.block.weights, columns.block.targets
    made = Block(
        vocabulary,
        *assemble(n, cells, vocabulary),
        block.codes[complete],
        block.labels,
        None if weights is None else weights[complete],
        None if targets is None else targets[complete],
    )
    return replace(segment.with_block(made), scored_from=switch)


def _scaled(table: Floats, scaling: str) -> Floats:
    """Scale every column over the whole set; a constant one becomes the lower end of the range, or 0."""
    if scaling == "standard":
        deviation = table.std(axis=0)
        standard: Floats = (table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        return standard
    low, high = table.min(axis=0), table.max(axis=0)
    unit: Floats = (table - low) / np.where(high > low, high - low, 1.0)
    return 2.0 * unit - 1.0 if scaling == "symmetric" else unit
