"""Instances as arrays, for libraries that need every column in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from varifold.bench.sources import Schema, schema_of
from varifold.errors import ParameterError

__all__ = ["Arrays", "Frequencies", "InAdvance", "Means", "needs"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


def needs(package: str, learner: object) -> None:
    """Raise an error if a package is not installed."""
    if find_spec(package) is None:
        raise ParameterError(
            f"{type(learner).__name__} needs {package}, which is not installed; in a checkout of varifold: pip install "
            "--group peers"
        )


class Arrays:
    """Convert instances to rows of numbers: first the numbers, then the codes of string columns; absent is NaN."""

    def __init__(self, data: str) -> None:
        self.schema: Schema = schema_of(data)
        self.names = [*self.schema.numbers, *self.schema.levels]
        self.at = {name: i for i, name in enumerate(self.names)}
        self.codes = [{level: code for code, level in enumerate(levels)} for levels in self.schema.levels.values()]
        self.first_code = len(self.schema.numbers)

    def row(self, x: Mapping[Any, Any]) -> Floats:
        """Convert one instance."""
        row = np.full(len(self.names), np.nan)
        for name, value in x.items():
            i = self.at[name]
            row[i] = value if i < self.first_code else self.codes[i - self.first_code][value]
        return row


class Means:
    """Fill absent numbers with their mean so far, absent categories with the most frequent one so far."""

    def __init__(self, arrays: Arrays) -> None:
        self.first_code = arrays.first_code
        self.counts = np.zeros(arrays.first_code)
        self.means = np.zeros(arrays.first_code)
        self.squares = np.zeros(arrays.first_code)
        self.levels: list[Counter[float]] = [Counter() for _ in arrays.codes]

    def learn(self, row: Floats) -> None:
        """Add a row to the means."""
        numbers = row[: self.first_code]
        there = ~np.isnan(numbers)
        self.counts += there
        change = np.where(there, numbers - self.means, 0.0)
        self.means += change / np.maximum(self.counts, 1.0)
        self.squares += change * np.where(there, numbers - self.means, 0.0)
        for counter, code in zip(self.levels, row[self.first_code :].tolist(), strict=True):
            if code == code:
                counter[code] += 1

    def filled(self, row: Floats) -> Floats:
        """Return a row without gaps."""
        codes = [
            code if code == code else (counter.most_common(1)[0][0] if counter else 0.0)
            for counter, code in zip(self.levels, row[self.first_code :].tolist(), strict=True)
        ]
        numbers = row[: self.first_code]
        return np.concatenate([np.where(np.isnan(numbers), self.means, numbers), codes])

    def scaled(self, numbers: Floats) -> Floats:
        """Return numbers less their mean, over their standard deviation."""
        deviations = np.sqrt(self.squares / np.maximum(self.counts, 1.0))
        scaled: Floats = (numbers - self.means) / np.where(deviations > 0.0, deviations, 1.0)
        return scaled


class InAdvance:
    """A learner that needs the columns of its stream in advance: those of the data set `data`."""

    data: str

    @cached_property
    def arrays(self) -> Arrays:
        """Columns of the stream; read on first use."""
        return Arrays(self.data)

    @cached_property
    def filler(self) -> Means:
        """Means so far, which fill absent values."""
        return Means(self.arrays)


class Frequencies:
    """Shares of the labels so far, smoothed by one instance of each label."""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()

    def learn(self, y: Any) -> None:
        """Count a label."""
        self.counts[y] += 1

    def shares(self) -> dict[Any, float]:
        """Return the share of each label; empty before the first."""
        total = sum(self.counts.values()) + len(self.counts)
        return {y: (n + 1) / total for y, n in self.counts.items()}
