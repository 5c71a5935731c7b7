"""Batches and their targets: decide once whether a stream has classes or numbers to predict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import clear_labels
from varifold.base.clock import in_order, looks_like_time
from varifold.base.label_count import FIRST_ROWS, MOST_LABELS, too_many_labels
from varifold.base.number_texts import are_numbers
from varifold.errors import DataError
from varifold.streams.readers.context import Context
from varifold.streams.readers.notation import unit_of
from varifold.streams.stream import Batch

__all__ = ["are_measured", "make_batch", "many_labels_remedy"]

FEW_VALUES = 10
"""In a short stream more numbers than this are a quantity if some are not whole and most occur once; in as many rows or
fewer, any are if one is not whole."""
_COMMA = re.compile(r"\d,\d")


def make_batch(context: Context, block: Block, ids: list[Any] | None = None, times: list[Any] | None = None) -> Batch:
    """Make a batch of the rows that a reader has read; all readers call this.

    The first block that has labels decides the type of the target, if the caller has not; labels that are numbers to
    predict are converted.
    """
    if context.target_type is None and (block.codes >= 0).any():
        labels, rows = _different_labels(block), int((block.codes >= 0).sum())
        context.target_type = "number" if are_measured(labels, rows) else "class"
        if context.target_type == "class":
            _reject_dates(context, labels)
            _reject_few_texts(labels, rows)
            _reject_many_labels(context, block)
    if context.dates.order is not None and times is not None:
        times = [in_order(time, context.dates.order) for time in times]
    batch = Batch(block, ids, times)
    before, context.rows = context.rows, context.rows + len(block)
    if context.target_type == "number" and block.targets is None:
        return _with_targets(context, batch, before)
    return batch


def _different_labels(block: Block) -> list[Any]:
    """Return the labels that occur in a block, each once."""
    values = block.labels.values
    counts = np.bincount(block.codes[block.codes >= 0])  # np.unique would import numpy.ma
    return [values[code] for code in np.flatnonzero(counts).tolist()]


def _reject_dates(context: Context, labels: list[Any]) -> None:
    """Raise an error if the different labels are dates, each of which would be a class."""
    if len(labels) > FEW_VALUES and all(isinstance(y, str) and looks_like_time(y) for y in labels):
        context.target_type = None
        raise DataError(
            f"{_the_target(context)} holds dates such as {labels[0]!r}; choose another target, or pass "
            "target_type='class' (--target-type class) to take each as a class"
        )


def _the_target(context: Context) -> str:
    return "the target" if context.target is None else f"the target column {context.target!r}"


def _reject_many_labels(context: Context, block: Block) -> None:
    """Raise an error if most labels are different, before a learner reserves memory for each."""
    values = block.labels.values
    labels = [values[code] for code in block.codes[block.codes >= 0][:FIRST_ROWS].tolist()]
    described = too_many_labels(labels)
    if described is not None:
        context.target_type = None  # a stream that is read again is rejected again
        raise DataError(f"{_the_target(context)} has {described}; {many_labels_remedy(labels, context.target)}")


def many_labels_remedy(labels: Sequence[Any], target: str | None = None, json: bool = False) -> str:
    """Describe what to do if most labels are different; `json` is whether they come from JSON, without options."""
    each = "target_type='class' (--target-type class) takes each as a class"
    unit = unit_of([label for label in labels if isinstance(label, str)])
    if unit is not None and target is not None:
        numeric = f"types={{{target!r}: 'numeric'}} (--types {target}=numeric)"
        return f"{numeric} reads numbers without the unit {unit!r}; {each}"
    if unit is not None:
        return f"to predict numbers, write them without the unit {unit!r}; {each}"
    texts = [label for label in labels if isinstance(label, str)]
    if json and are_numbers(texts):
        return f"to predict numbers, write them without quotes and with a decimal point; {each}"
    if not json and any(_COMMA.search(text) for text in texts):
        return f"numbers may be written with a decimal comma, decimal=',' (--decimal ,); {each}"
    if texts:
        return f"choose another target if they identify the rows; {each}"
    return f"target_type='number' (--target-type number) predicts numbers, {each}"


def _reject_few_texts(labels: list[Any], rows: int) -> None:
    """Raise an error if a numeric target has a few texts, which would turn every number into a class."""
    texts = [y for y in labels if isinstance(y, str)]
    numbers = [y for y in labels if not isinstance(y, str)]
    if texts and 10 * len(texts) <= len(labels) and are_measured(numbers, rows):
        raise DataError(
            f"the target has {len(numbers):,} different numbers, such as {numbers[0]!r}, and {texts[0]!r}, which is "
            f"not one; if it means that there is no target, pass absent=[{texts[0]!r}, ...] (--absent {texts[0]}); if "
            "every number is a class, pass target_type='class' (--target-type class)"
        )


def are_measured(labels: Sequence[Any], rows: int) -> bool:
    """Return whether these different labels, which occur in `rows` rows, are measurements rather than classes.

    Measurements are many different numbers: more than 50, if some are not whole or, on average, every other whole
    number is missing; or more than 10 that are not all whole and mostly occur once. In up to 10 rows one number that is
    not whole decides.
    """
    n = len(labels)
    if not n or not all(isinstance(y, int | float) and not isinstance(y, bool) for y in labels):
        return False
    if all(float(y).is_integer() for y in labels):
        return n > MOST_LABELS and max(labels) - min(labels) >= 2 * n
    return rows <= FEW_VALUES or n > MOST_LABELS or (n > FEW_VALUES and 2 * n > rows)


def _with_targets(context: Context, batch: Batch, rows: int) -> Batch:
    """Replace the labels of a batch by numbers to predict; report rows whose label is no finite number.

    `rows` is the number of rows before the batch. The table of labels is cleared, since each number may be a new one.
    """
    block = batch.block
    numbers = np.array([_finite(y) for y in block.labels.values] + [np.nan])
    targets = numbers[block.codes]
    bad = np.flatnonzero(np.isnan(targets) & (block.codes >= 0))
    for i in bad.tolist():
        label = block.labels.values[block.codes[i]]
        context.failed("the target", rows + i + 1, context.target, f"{label!r} is not a finite number")
    batch = Batch(block.with_targets(targets), batch.ids, batch.times)
    clear_labels(context.labels)
    return batch.take(np.setdiff1d(np.arange(len(block)), bad)) if len(bad) else batch


def _finite(label: object) -> float:
    """Convert a label to a finite number; return NaN if it is not one."""
    try:
        number = float(label) if isinstance(label, int | float) else float("nan")
    except OverflowError:
        return float("nan")
    return number if np.isfinite(number) else float("nan")
