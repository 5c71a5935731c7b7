"""What a stream's target is: classes, or numbers to predict."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from varifold._engine.block import Block
from varifold.errors import DataError, VarifoldWarning
from varifold.streams.readers.context import Context
from varifold.streams.stream import Batch

__all__ = [
    "FIRST_ROWS",
    "TARGET_TYPES",
    "are_measured",
    "as_numbers",
    "decide_target_type",
    "is_quantity",
    "look_measured",
    "too_many_labels",
    "warn_single_value",
]

TARGET_TYPES = ("class", "number")
MOST_VALUES = 50
"""More different numbers than that are a quantity when some are not whole, or when they lie apart."""
FIRST_ROWS = 500
"""Rows whose labels are counted before a learner takes memory for each."""
FEW_VALUES = 10
"""In a short stream more numbers than that are a quantity, when some are not whole and most occur once."""
FEWEST_ROWS = 10
"""A shorter stream may well have one label by chance."""


def decide_target_type(context: Context, block: Block) -> None:
    """Settle, from the first block that has labels, whether the target is a class or a number."""
    if context.target_type is None and (block.codes >= 0).any():
        context.target_type = "number" if is_quantity(block) else "class"
        if context.target_type == "class":
            _refuse_few_texts(block)


def _refuse_few_texts(block: Block) -> None:
    """Refuse a target of measurements among which a few are texts: as classes they would be learned in vain."""
    codes = block.codes[block.codes >= 0]
    found = [block.labels.values[code] for code in np.flatnonzero(np.bincount(codes)).tolist()]
    texts = [y for y in found if isinstance(y, str)]
    numbers = [y for y in found if not isinstance(y, str)]
    if texts and 10 * len(texts) <= len(found) and are_measured(numbers, len(codes)):
        raise DataError(
            f"the target holds {len(numbers):,} different numbers, such as {numbers[0]!r}, and {texts[0]!r}, which is "
            f"none; if it means that there is no target, say absent=[{texts[0]!r}, ...] (--absent {texts[0]}), or take "
            "every number as a class, target_type='class' (--target-type class)"
        )


def too_many_labels(labels: Iterable[Any]) -> str | None:
    """Describe labels that are hardly classes: more than 50 different ones, more than half of the first rows."""
    first = list(itertools.islice(labels, FIRST_ROWS))
    different = list(dict.fromkeys(first))
    if len(different) <= MOST_VALUES or 2 * len(different) <= len(first):
        return None
    shown = ", ".join(map(repr, different[:3]))
    return f"{len(different)} different labels among the first {len(first)} rows, such as {shown}"


def is_quantity(block: Block) -> bool:
    """Whether the labels of a block are measurements rather than classes.

    They are when they are numbers of which there are many: more than 50, some of them not whole or, on the average,
    every other whole number left out; or more than 10 that are not all whole and mostly occur once.
    """
    values = block.labels.values
    codes = block.codes[block.codes >= 0]
    return are_measured([values[code] for code in np.flatnonzero(np.bincount(codes)).tolist()], len(codes))


def are_measured(found: Sequence[Any], rows: int) -> bool:
    """The same for the different labels of so many rows."""
    if not found or not all(isinstance(y, int | float) and not isinstance(y, bool) for y in found):
        return False
    if all(float(y).is_integer() for y in found):
        return len(found) > MOST_VALUES and max(found) - min(found) >= 2 * len(found)
    return len(found) > MOST_VALUES or (len(found) > FEW_VALUES and 2 * len(found) > rows)


def look_measured(labels: Sequence[Any]) -> bool:
    """The same where a stream has just begun: among so few labels that nothing else decides, one that is not whole."""
    if len(labels) > FEW_VALUES:
        return are_measured(list(dict.fromkeys(labels)), len(labels))
    numbers = all(isinstance(y, int | float) and not isinstance(y, bool) for y in labels)
    return numbers and any(not float(y).is_integer() for y in labels)


def as_numbers(context: Context, batch: Batch, rows: int) -> Batch:
    """The batch with its labels as numbers to predict; a row whose label is no finite number is reported.

    `rows` came before it. The table of labels is emptied, since each number may be a new one.
    """
    block = batch.block
    found = np.array([_number(y) for y in block.labels.values] + [np.nan])
    targets = found[block.codes]
    bad = np.flatnonzero(np.isnan(targets) & (block.codes >= 0))
    for i in bad.tolist():
        shown = block.labels.values[block.codes[i]]
        context.failed("the target", rows + i + 1, context.target, f"{shown!r} is no finite number")
    batch = replace(batch, block=block.with_targets(targets))
    context.labels.clear()
    return batch.take(np.setdiff1d(np.arange(len(block)), bad)) if len(bad) else batch


def _number(label: object) -> float:
    """A label as a finite number, NaN where it is none."""
    try:
        number = float(label) if isinstance(label, int | float) else float("nan")
    except OverflowError:
        return float("nan")
    return number if np.isfinite(number) else float("nan")


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
