"""Make a block of parsed files: label rules, categories, the papers' variants."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from varifold._engine.data.assemble import assemble
from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Labels, Vocabulary, encode_labels
from varifold.datasets.parse import Sparse, TextColumns
from varifold.datasets.registry import Entry
from varifold.errors import DataError

__all__ = ["from_sparse", "from_table", "from_words", "labelled"]


def _plain(label: str) -> str | int:
    """Convert a label to a number if it is one; remove the full stop after labels in Adult's test part."""
    try:
        return int(float(label))
    except ValueError:
        return label.removesuffix(".")


def _apply_rule(entry: Entry, y: list[Any]) -> list[Any]:
    """Apply the label rule of the registry entry."""
    if entry.above is not None:
        return [int(label > entry.above) for label in y]
    if entry.equals is not None:
        return [label if label == entry.equals else "other" for label in y]
    return y


def _table_of_labels(entry: Entry, y: list[Any]) -> Labels:
    """Make the table of labels: of two, the positive one is second; more are sorted."""
    labels = sorted(set(y))
    positive = 1 if entry.above is not None else entry.equals if entry.equals is not None else entry.positive
    if positive is None:
        return Labels(labels)
    if positive not in labels or len(labels) != 2:
        raise DataError(f"data set {entry.name!r} has the labels {labels}; expected two, one of them {positive!r}")
    return Labels([label for label in labels if label != positive] + [positive])


def _finished(entry: Entry, cells: tuple[Any, Any, Any], y: list[Any], vocabulary: Vocabulary) -> Block:
    y = _apply_rule(entry, y)
    labels = _table_of_labels(entry, y)
    return _chosen(entry, Block(vocabulary, *cells, encode_labels(y, labels, len(y)), labels))


def _chosen(entry: Entry, block: Block) -> Block:
    """Return the rows that the registry entry selects."""
    if entry.complete:
        cells = np.diff(block.indptr)
        return block.take(np.flatnonzero(cells == cells.max()))
    if entry.draw:
        draw = np.random.default_rng(0)
        rows = [draw.choice(np.flatnonzero(block.codes == c), m, replace=False) for c, m in enumerate(entry.draw)]
        return block.take(np.sort(np.concatenate(rows)))
    return block[: entry.first] if entry.first else block


def labelled(entry: Entry, block: Block, y: list[Any]) -> Block:
    """Add labels to a block after applying the registry's rule."""
    return _finished(entry, (block.indptr, block.indices, block.values), y, block.vocabulary)


def from_table(entry: Entry, table: TextColumns) -> Block:
    """Make a block of named columns."""
    target = entry.target or "class"
    vocabulary = Vocabulary()
    columns: list[tuple[Any, Any]] = []
    for name, cells in table.columns.items():
        if name == target or name in entry.ignore:
            continue
        if name in entry.boolean:
            columns.append(
                (vocabulary.add(name), np.array([cell == entry.boolean[name] for cell in cells], dtype=float))
            )
        elif name in entry.onehot:
            for level in sorted(set(cells), key=_natural):
                shown = np.array([cell == level for cell in cells], dtype=float)
                columns.append((vocabulary.add(f"{name}:{level}"), shown))
        elif name in table.nominal or (entry.header and not _numeric(cells)):
            occurring = set(cells)
            ordered = [c for c in table.declared.get(name, []) if c in occurring]
            ids = {c: vocabulary.add_level(name, c) for c in dict.fromkeys(ordered + cells) if c not in entry.absent}
            columns.append((np.array([ids.get(cell, 0) for cell in cells], dtype=np.int32), None))
        else:
            numbers = np.array([np.nan if cell in entry.absent else float(cell) for cell in cells])
            columns.append((vocabulary.add(name), numbers))
    y = [_plain(label) for label in table.columns[target]]
    return _finished(entry, assemble(len(y), columns, vocabulary), y, vocabulary)


def _natural(level: str) -> tuple[float, str]:
    return (float(level), "") if re.fullmatch("-?[0-9]+", level) else (0.0, level)


def _numeric(cells: list[str]) -> bool:
    try:
        float(cells[0])
    except ValueError:
        return False
    return True


def from_sparse(entry: Entry, data: Sparse) -> Block:
    """Make a block of the features F1, F2, ...; indices not stored are 0 if the entry declares it."""
    width = entry.width or int(data.indices.max())
    y = [int(label) for label in data.labels]
    vocabulary = Vocabulary()
    ids = [vocabulary.add(f"F{j}") for j in range(1, width + 1)]
    dense = np.zeros((len(y), width)) if entry.omitted == "zero" else np.full((len(y), width), np.nan)
    dense[np.repeat(np.arange(len(y)), np.diff(data.indptr)), data.indices - 1] = data.values
    if entry.only:
        kept = np.isin(data.labels, entry.only)
        dense, y = dense[kept], [label for label, keep in zip(y, kept, strict=True) if keep]
    cells = assemble(len(y), [(i, dense[:, j]) for j, i in enumerate(ids)], vocabulary)
    return _finished(entry, cells, y, vocabulary)


def from_words(entry: Entry, data: Sparse, words: list[str]) -> Block:
    """Make a block of word counts; a word not in the text is absent."""
    vocabulary = Vocabulary()
    ids = np.array([vocabulary.add(word) for word in words[: entry.width]], dtype=np.int32)
    kept = data.indices < len(ids)
    indptr = np.concatenate([[0], np.cumsum(kept)])[data.indptr]
    cells = (indptr, ids[data.indices[kept]], data.values[kept])
    return _finished(entry, cells, [int(label) for label in data.labels], vocabulary)
