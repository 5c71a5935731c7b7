"""Columns of a block, in the order in which they first occur."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold.errors import DataError
from varifold.streams.scenarios._apply_mask import occurring

__all__ = ["Columns", "zscore"]


class Columns:
    """Columns that occur in a block; `position` maps each vocabulary id to the position of its column.

    With `known`, the columns of earlier blocks, those keep their positions and new ones follow.
    """

    def __init__(self, block: Block, known: Columns | None = None) -> None:
        self.block = block
        columns = block.vocabulary.column_array()
        self.stored = np.flatnonzero(occurring(block, len(columns)))
        present = np.zeros(len(columns), dtype=bool)
        present[columns[self.stored]] = True
        self.ids = np.flatnonzero(present)
        if known is not None:
            self.stored = np.union1d(self.stored, known.stored)
            self.ids = np.concatenate([known.ids, np.setdiff1d(self.ids, known.ids)])
        place = np.zeros(len(columns), dtype=np.int32)
        place[self.ids] = np.arange(len(self.ids), dtype=np.int32)
        self.position = place[columns]

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len(self.ids)

    @property
    def names(self) -> list[str | int]:
        """Return the names of the columns."""
        return [self.block.vocabulary.name_of(int(i)) for i in self.ids]

    @property
    def repeated(self) -> bool:
        """Return whether some column has several ids: the indicators of its levels."""
        return len(self.stored) > len(self.ids)

    @cached_property
    def shift(self) -> int:
        """Return the difference between any stored id and the position of its column; -1 if it is not constant.

        Every stored id is compared: the levels of a string column share one position, whatever their ids.
        """
        places = self.position[self.stored]
        if not len(self.stored) or self.stored[0] < places[0]:
            return -1
        shift = int(self.stored[0] - places[0])
        return shift if np.array_equal(self.stored - places, np.full(len(places), shift)) else -1

    @cached_property
    def of_cell(self) -> np.ndarray[Any, Any]:
        """Return the column of each stored cell."""
        columns: np.ndarray[Any, Any] = self.position[self.block.indices]
        return columns

    @cached_property
    def nominal(self) -> np.ndarray[Any, Any]:
        """Return which columns contain strings (indicators) anywhere in the block."""
        found = np.zeros(self.width, dtype=bool)
        for i in self.stored.tolist():
            if self.block.vocabulary.is_indicator(i):
                found[self.position[i]] = True
        return found

    @cached_property
    def row_of_cell(self) -> np.ndarray[Any, Any]:
        """Return the row of each stored cell."""
        return np.repeat(np.arange(len(self.block)), np.diff(self.block.indptr))

    def dense(self) -> np.ndarray[Any, Any]:
        """Return rows x columns, NaN where absent; strings become codes in alphabetical order of their levels."""
        table = np.full((len(self.block), self.width), np.nan)
        values = self.block.values.copy()
        for i, code in self._codes().items():
            values[self.block.indices == i] = code
        table[self.row_of_cell, self.of_cell] = values
        return table

    def _codes(self) -> dict[int, int]:
        """Map each indicator id to the code of its level within its column."""
        vocabulary = self.block.vocabulary
        levels: dict[int, list[tuple[str, int]]] = {}
        for i in self.stored.tolist():
            if vocabulary.is_indicator(i):
                levels.setdefault(int(self.position[i]), []).append((vocabulary.level_of(i)[1], i))
        return {i: code for found in levels.values() for code, (_, i) in enumerate(sorted(found))}


def zscore(block: Block) -> Block:
    """Standardise numbers with the mean and deviation of the whole block.

    This looks ahead in the stream: it is for repeating published experiments only. Observed values only;
    a constant feature becomes 0; indicators stay 0 or 1.
    """
    if not isinstance(block, Block):
        raise DataError(f"zscore() needs a Block, not {type(block).__name__}; to_block() makes one")
    size = block.vocabulary.size
    count = np.bincount(block.indices, minlength=size)
    divisor = np.maximum(count, 1)
    mean = np.bincount(block.indices, weights=block.values, minlength=size) / divisor
    centred = block.values - mean[block.indices]
    deviation = np.sqrt(np.bincount(block.indices, weights=centred * centred, minlength=size) / divisor)
    constant = deviation <= 1e-12 * np.abs(mean)
    scaled = np.where(constant[block.indices], 0.0, centred / np.where(constant, 1.0, deviation)[block.indices])
    used = np.flatnonzero(count)
    indicator = np.zeros(size, dtype=bool)
    indicator[[i for i in used.tolist() if block.vocabulary.is_indicator(i)]] = True
    values = np.where(indicator[block.indices], block.values, scaled)
    return block.with_values(values)
