"""Permutation importance of columns: how much a learner's loss increases when a column's cells are permuted.

A weight shows how a feature enters the score, not how predictions would change without it: noise with many values has
large weights. So importance is measured: the cells of one column, missing ones included, are permuted over some
instances. This breaks the column's relation to the label and keeps its distribution; the increase of the loss is its
importance. Use instances that have not been learned: on learned ones a column that was only memorised looks important.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.block import Block
from varifold.base.blocks import to_block
from varifold.base.learner import is_regressor
from varifold.base.params import Integer, validate
from varifold.errors import DataError

__all__ = ["Importance", "columns_of", "extra_losses", "measured"]

Name = str | int
Floats = NDArray[np.float64]
SMALLEST = 1e-3
"""Lower bound on probabilities, so that a single prediction cannot dominate the mean."""
CLEAR = 2.0
"""Number of standard errors by which a loss has to exceed 0 to count."""


@dataclass(frozen=True)
class Importance:
    """Increase of the mean log loss (regressors: mean absolute error) when a column's cells are permuted."""

    loss: float
    """Mean increase of the log loss (natural logarithm) or error; about 0 for an uninformative column."""
    error: float
    """Standard error of that mean over the instances."""
    present: float
    """Share of the instances that have the column."""

    @property
    def matters(self) -> bool:
        """Whether the loss exceeds 0 by more than two standard errors."""
        return self.loss > CLEAR * self.error


def measured(learner: Any, X: Any, y: Any = None, *, repeats: int = 5, seed: int = 0) -> dict[Name, Importance]:
    """Measure the importance of every column of X, largest first; see `VaryingClassifier.column_importances`."""
    validate("column_importances", {"repeats": Integer(1), "seed": Integer(0)}, {"repeats": repeats, "seed": seed})
    block = (
        _with_targets(to_block(X, y, numeric=True)) if is_regressor(learner) else _with_labels(learner, to_block(X, y))
    )
    rng = np.random.default_rng(seed)
    importances: dict[Name, Importance] = {}
    for column in columns_of(block):
        extra, present = extra_losses(learner, block, column, [rng.permutation(len(block)) for _ in range(repeats)])
        importances[column_name(block, column)] = summary(extra, present)
    return dict(sorted(importances.items(), key=lambda item: -item[1].loss))


def _with_targets(block: Block) -> Block:
    """Select the instances that have a target; raise DataError if none has."""
    held = np.zeros(len(block), dtype=bool) if block.targets is None else ~np.isnan(block.targets)
    if not held.any():
        raise DataError(
            f"importances are measured on instances with their targets; none of the {len(block):,} has one: pass y, or "
            "a Block that holds numbers"
        )
    return block.take(np.flatnonzero(held))


def _with_labels(learner: Any, block: Block) -> Block:
    """Select the labelled instances; raise DataError if none has a label that the learner knows."""
    if not (block.codes >= 0).any():
        raise DataError(
            f"importances are measured on labelled instances; none of the {len(block):,} has a label: pass y, or a "
            "Block that holds labels"
        )
    block = block.take(np.flatnonzero(block.codes >= 0))
    if not set(block.y) & set(learner.classes):
        raise DataError(
            f"importances are measured on instances whose label the learner knows; it knows {list(learner.classes)}, "
            f"and the instances have {sorted(set(block.y), key=str)[:5]}"
        )
    return block


def summary(extra: Floats, present: float) -> Importance:
    """Summarise the extra losses of instances by their mean and standard error."""
    n = len(extra)
    if n == 0:
        return Importance(float("nan"), float("nan"), present)
    error = float(extra.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Importance(float(extra.mean()), error, present)


def columns_of(block: Block) -> list[int]:
    """Return the ids of the columns that the block's cells belong to, ascending."""
    return np.unique(block.vocabulary.column_array()[block.indices]).tolist()  # type: ignore[no-any-return]


def column_name(block: Block, column: int) -> Name:
    """Return the name of a column."""
    return block.vocabulary.name_of(column)


def extra_losses(
    learner: Any, block: Block, column: int, permutations: list[NDArray[np.int64]]
) -> tuple[Floats, float]:
    """Return the mean extra loss of each instance with a known label, and the share of instances with the column."""
    before, known = losses(learner, block)
    mask = block.vocabulary.column_array()[block.indices] == column
    present = len(np.unique(_rows(block)[mask])) / len(block)
    after = np.zeros(len(block))
    for permutation in permutations:
        after += losses(learner, permuted(block, mask, permutation))[0]
    return (after / len(permutations) - before)[known], present


def losses(learner: Any, block: Block) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the log loss of each instance, and whether the learner knows its label; nothing is learned.

    For a regressor, return the absolute errors, all of them known.
    """
    if is_regressor(learner):
        assert block.targets is not None
        predictions = learner.run_block(block, np.arange(1, len(block) + 1))
        return np.abs(predictions - block.targets), np.ones(len(block), dtype=bool)
    _, probabilities = learner.run_block(block, np.arange(1, len(block) + 1))
    place = {label: i for i, label in enumerate(learner.classes)}
    places = np.array([place.get(label, -1) for label in block.labels.values] or [-1], dtype=np.int64)[block.codes]
    known = (places >= 0) & (block.codes >= 0)
    given = np.ones(len(block))
    if probabilities.shape[1]:
        given[known] = probabilities[np.flatnonzero(known), places[known]]
    return -np.log(np.clip(given, SMALLEST, 1.0)), known


def permuted(block: Block, mask: NDArray[np.bool_], permutation: NDArray[np.int64]) -> Block:
    """Permute the masked cells between rows: row i gets those of row ``permutation[i]``."""
    rows = _rows(block)
    target = np.argsort(permutation)  # row r's cells go to the row that draws r
    new_rows = np.where(mask, target[rows], rows)
    order = np.argsort(new_rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(new_rows, minlength=len(block)))])
    shuffled = Block(
        block.vocabulary, indptr, block.indices[order], block.values[order], block.codes, block.labels, block.weights
    )
    return shuffled if block.targets is None else shuffled.with_targets(block.targets)


def _rows(block: Block) -> NDArray[np.int64]:
    """Return the row of each cell."""
    return np.repeat(np.arange(len(block)), np.diff(block.indptr))
