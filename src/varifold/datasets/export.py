"""`export`: write a block as CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, TextIO

from varifold._engine.data.block import Block
from varifold.errors import DataError, ParameterError

__all__ = ["FORMATS", "export"]

FORMATS = ("csv", "jsonl")


def export(block: Block, file: TextIO, format: str = "csv", target: str = "label") -> None:
    """Write a block as CSV (absent cells are empty) or as JSON lines (absent keys are left out)."""
    if format not in FORMATS:
        raise ParameterError(f"the format must be one of {', '.join(FORMATS)}. Got {format!r} instead.")
    if not isinstance(block, Block):
        raise DataError(f"export() needs a Block, not {type(block).__name__}; a Dataset has one, to_block() makes one")
    if format == "jsonl":
        for row, label in _rows(block):
            file.write(json.dumps({**row, target: label}, ensure_ascii=False) + "\n")
        return
    names = [block.vocabulary.name_of(i) for i in block.vocabulary.columns()]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*names, target])
    for row, label in _rows(block):
        writer.writerow([*(row.get(name, "") for name in names), label])


def _rows(block: Block) -> Iterator[tuple[dict[Any, Any], Any]]:
    """Yield (row, label) with whole numbers as int."""
    for row, label in zip(block.rows(), block.y, strict=True):
        yield {k: int(v) if isinstance(v, float) and v == int(v) else v for k, v in row.items()}, label
