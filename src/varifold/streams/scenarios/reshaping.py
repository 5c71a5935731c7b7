"""Scenarios that change rows or values instead of hiding columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Vocabulary
from varifold.errors import DataError, ParameterError
from varifold.streams.scenarios.columns import Columns
from varifold.streams.scenarios.segment import Segment

__all__ = ["absences", "balanced", "mixed", "sample", "stretch"]


def balanced(segment: Segment, seed: int = 0) -> Segment:
    """Repeat rows of the smaller classes, drawn with replacement, until all are as large as the largest.

    As in OVFIV, before the rows are permuted; its own `seed` makes the copies the same in every run. Copies of a row
    recur in the stream, which helps every online learner.
    """
    if seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0. Got {seed} instead.")
    codes = segment.block.codes
    if np.any(codes < 0):
        raise DataError("balanced needs a label in every row")
    counts = np.bincount(codes)
    draw = np.random.default_rng(seed)
    rows = [np.arange(len(codes))]
    for code in np.flatnonzero((counts > 0) & (counts < counts.max())).tolist():
        rows.append(draw.choice(np.flatnonzero(codes == code), counts.max() - counts[code]))
    return segment.with_block(segment.block.take(np.concatenate(rows)))


def sample(segment: Segment, rows: int, least: int = 20) -> Segment:
    """Keep `rows` rows, drawn by the seed: the share of each label stays, but at least `least` of each are kept.

    Before the rows are permuted. A set that has fewer rows stays as it is. Where a label would have fewer than `least`
    rows, the most frequent one has fewer instead. Shares are rounded, so that a few rows less than `rows` may be kept.
    """
    if rows < 1 or least < 0:
        raise ParameterError(f"rows must be >= 1 and least >= 0. Got rows={rows}, least={least} instead.")
    codes = segment.block.codes
    if np.any(codes < 0):
        raise DataError("sample needs a label in every row")
    n = len(codes)
    if n <= rows:
        return segment
    counts = np.bincount(codes)
    wanted = np.minimum(counts, np.maximum(least, np.round(counts * (rows / n)).astype(np.int64)))
    most = counts.argmax()
    left = rows - (wanted.sum() - wanted[most])
    if left < min(least, counts[most]):
        raise ParameterError(
            f"{rows} rows cannot hold at least {least} of each of {np.count_nonzero(counts)} labels; "
            "raise rows or lower least"
        )
    wanted[most] = min(left, counts[most])
    draw = np.random.default_rng(segment.seed)
    kept = [draw.choice(np.flatnonzero(codes == c), k, replace=False) for c, k in enumerate(wanted.tolist())]
    return segment.with_block(segment.block.take(np.sort(np.concatenate(kept))))


def stretch(segment: Segment, rows: int) -> Segment:
    """Keep `rows` consecutive instances, from a place drawn at random; a shorter stream stays as it is."""
    if rows < 1:
        raise ParameterError(f"the number of rows must be a whole number >= 1. Got {rows} instead.")
    segment = segment.reordered()
    if rows >= len(segment.block):
        return segment
    start = int(np.random.default_rng(segment.seed).integers(len(segment.block) - rows + 1))
    return segment.with_block(segment.block[start : start + rows])


def mixed(segment: Segment, order: str = "", bins: str = "equal") -> Segment:
    """Convert numbers to Boolean, continuous and ordinal columns, a third each.

    As in OVFM's released data: continuous is scaled to [0, 1], Boolean is 1 above the middle of the range, ordinal is
    one of 5 bins of equal width (0 to 4), all over the whole set. ``bins=text`` is the paper's text: Boolean is 1 above
    the median (from the median on, if nothing is above it), ordinal 1 above the mean, so that it has two values, too.
    `order` gives the blocks of columns as letters: ``bco``, or
    ``cbo`` for wdbc; ``none`` leaves a set as it is, as the authors do with sets that are mixed by nature. A registered
    set knows its own; any other is ``bco``. ``bins=quantile`` cuts Boolean and ordinal at quantiles instead.
    """
    order = order or segment.conversion or "bco"
    if order == "none":
        return segment
    if sorted(order) != ["b", "c", "o"]:
        raise ParameterError(f"order must be the letters b, c and o in some order, or none. Got {order!r} instead.")
    if bins not in ("equal", "quantile", "text"):
        raise ParameterError(f"bins must be equal, quantile or text. Got {bins!r} instead.")
    block = segment.block
    columns = segment.columns
    values = block.values.copy()
    third = columns.width // 3
    for j in np.flatnonzero(~columns.nominal).tolist():
        kind = order[0] if j < third else order[2] if j >= columns.width - third else order[1]
        cells = np.flatnonzero(columns.of_cell == j)
        values[cells] = _converted(values[cells], kind, bins)
    return replace(segment, block=block.with_values(values))


def absences(segment: Segment) -> Segment:
    """Add a column ``NAME (absent)`` for every column: 1 where it is absent and was present before.

    The baseline that OVFIV argues against: values and absences concatenated, for one learner
    (``informative+absences``). A column that has not been seen yet has no indicator.
    """
    segment = segment.reordered()
    block, columns = segment.block, Columns(segment.block)
    n, ids = len(block), np.unique(block.indices).tolist()
    shown = np.zeros((n, columns.width), dtype=bool)
    shown[columns.row_of_cell, columns.of_cell] = True
    absent = np.logical_or.accumulate(shown, axis=0) & ~shown
    vocabulary = Vocabulary()
    new_id = np.zeros(block.vocabulary.size, dtype=block.indices.dtype)
    for i in ids:
        if block.vocabulary.is_indicator(i):
            new_id[i] = vocabulary.add_level(*block.vocabulary.level_of(i))
        else:
            new_id[i] = vocabulary.add(block.vocabulary.name_of(i))
    added = np.array([vocabulary.add(f"{name} (absent)") for name in columns.names], dtype=block.indices.dtype)
    rows, places = np.nonzero(absent)
    row_of = np.concatenate([columns.row_of_cell, rows])
    order = np.argsort(row_of, kind="stable")
    indices = np.concatenate([new_id[block.indices], added[places]])[order]
    values = np.concatenate([block.values, np.ones(len(rows))])[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=n))])
    made = Block(vocabulary, indptr, indices, values, block.codes, block.labels, block.weights, block.targets)
    return segment.with_block(made)


def _converted(values: np.ndarray[Any, Any], kind: str, bins: str) -> np.ndarray[Any, Any]:
    low, high = values.min(), values.max()
    unit: np.ndarray[Any, Any] = (values - low) / (high - low) if high > low else np.zeros_like(values)
    if kind == "c":
        return unit
    if bins == "text":
        bound = np.median(unit) if kind == "b" else unit.mean()
        above: np.ndarray[Any, Any] = unit > bound if (unit > bound).any() else unit >= bound
        return above.astype(np.float64)
    parts = 2 if kind == "b" else 5
    cuts = np.arange(1, parts) / parts
    edges: np.ndarray[Any, Any] = cuts if bins == "equal" else np.quantile(unit, cuts)
    return np.searchsorted(edges, unit, side="left" if kind == "b" else "right").astype(np.float64)
