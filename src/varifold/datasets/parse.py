"""Parse the text formats of the registered files into columns of strings or sparse rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varifold.datasets.registry import Entry
from varifold.errors import DataError

__all__ = ["Sparse", "TextColumns", "arff", "letters", "sparse", "table"]


@dataclass
class TextColumns:
    """Cells of each column as in the file; `nominal` names the columns whose cells are categories.

    `declared` has their values in the order in which the file declares them, if it does.
    """

    columns: dict[str, list[str]]
    nominal: set[str]
    declared: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Sparse:
    """Rows of (index, value) as CSR arrays, with the first token of each row."""

    indptr: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]


def _records(entry: Entry, texts: list[str]) -> Iterator[list[str]]:
    for text in texts:
        if entry.separator == " ":
            yield from (line.split() for line in text.splitlines() if line.strip())
        else:
            rows = csv.reader(io.StringIO(text), delimiter=entry.separator, skipinitialspace=True)
            yield from (row for row in rows if row and not row[0].startswith("|"))


def table(entry: Entry, texts: list[str]) -> TextColumns:
    """Parse a delimited file, with a header or with the registry's names."""
    records = _records(entry, [text.removeprefix("\ufeff") for text in texts])
    names = next(records) if entry.header else list(entry.columns)
    return _transposed(entry, names, records, set(entry.category))


def _transposed(
    entry: Entry,
    names: list[str],
    records: Iterator[list[str]],
    nominal: set[str],
    declared: dict[str, list[str]] | None = None,
) -> TextColumns:
    rows = list(records)
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        raise DataError(f"data set {entry.name!r}: row {wrong + 1} has {len(rows[wrong])} cells, not {len(names)}")
    cells = zip(*rows, strict=True)
    columns = {name: [c.strip() for c in column] for name, column in zip(names, cells, strict=True)}
    return TextColumns(columns, nominal, declared or {})


def arff(entry: Entry, texts: list[str]) -> TextColumns:
    """Parse a dense ARFF file; nominal attributes are those declared as such."""
    lines = [line for line in texts[0].splitlines() if line.strip() and not line.startswith("%")]
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    declared = [line.split(None, 2)[1:] for line in lines[:start] if line.lower().startswith("@attribute")]
    values = {
        name: [v.strip() for v in next(csv.reader([kind.strip().strip("{}")], quotechar="'", skipinitialspace=True))]
        for name, kind in declared
        if kind.lstrip().startswith("{")
    }
    records = csv.reader(lines[start + 1 :], quotechar="'", skipinitialspace=True)
    return _transposed(entry, [name for name, _ in declared], records, set(values), values)


def letters(entry: Entry, texts: list[str]) -> TextColumns:
    """Parse one class, name and sequence of letters per line; each position in the sequence is a column."""
    rows = [[field.strip() for field in line.split(",")] for line in texts[0].splitlines() if line.strip()]
    names = [f"P{i + 1:02d}" for i in range(entry.width or 0)]
    columns = {name: [row[2][i] for row in rows] for i, name in enumerate(names)}
    return TextColumns({**columns, "class": [row[0] for row in rows]}, set(names))


def sparse(texts: list[str]) -> Sparse:
    """Parse LIBSVM lines: a label, then index:value pairs."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    heads, _, tails = zip(*(line.partition(" ") for line in lines), strict=True)
    counts = np.array([tail.count(":") for tail in tails], dtype=np.int64)
    flat = np.fromstring(" ".join(tails).replace(":", " "), sep=" ")
    if len(flat) != 2 * counts.sum():
        raise DataError("a line is not 'label index:value index:value ...'")
    return Sparse(
        np.concatenate([[0], np.cumsum(counts)]),
        flat[::2].astype(np.int64),
        flat[1::2],
        np.array([float(h) for h in heads]),
    )
