"""Targets that do not suit a classifier: quantities, and a single value."""

from __future__ import annotations

import warnings

import numpy as np

from varifold._engine.block import Block
from varifold.errors import DataError, VarifoldWarning
from varifold.streams.readers.context import Context

__all__ = ["refuse_numeric_target", "warn_single_value"]

MOST_VALUES = 50
"""So many different numbers, some of them not whole, may still be classes."""
FEWEST_ROWS = 10
"""A shorter stream may well have one label by chance."""


def refuse_numeric_target(context: Context, block: Block) -> None:
    """Refuse a first block whose labels are measurements rather than classes."""
    if context.target_type == "class":
        return
    values = block.labels.values
    found = [values[code] for code in np.unique(block.codes[block.codes >= 0]).tolist()]
    numbers = [y for y in found if isinstance(y, int | float)]
    fractions = [y for y in numbers if isinstance(y, float) and not y.is_integer()]
    if len(numbers) > MOST_VALUES and fractions:
        raise DataError(
            f"{_name(context)} holds {len(numbers):,} different numbers in the first {len(block):,} rows, some of them "
            f"not whole (such as {fractions[0]!r}), so it is a quantity and not a class; name a column of classes, or "
            "pass target_type='class' (--target-type class) if every number is a class of its own"
        )


def warn_single_value(context: Context, rows: int) -> None:
    """After the last row: say so when every label was the same."""
    if rows >= FEWEST_ROWS and len(context.labels) == 1:
        warnings.warn(
            f"{_name(context)} has one value only, {context.labels.values[0]!r}, in all {rows:,} rows; there is "
            "nothing to tell apart",
            VarifoldWarning,
            stacklevel=2,
        )


def _name(context: Context) -> str:
    return "the target" if context.target is None else f"the target column {context.target!r}"
