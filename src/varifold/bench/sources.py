"""Load the data set of a cell, scale it as in the paper, and make its stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from varifold._engine.data.block import concatenate
from varifold.base import Block, Vocabulary
from varifold.bench.cell import Cell
from varifold.errors import DataError, ParameterError
from varifold.streams import Prepared, prepare, zscore

__all__ = [
    "CellStream",
    "FileData",
    "Schema",
    "coded",
    "file_name",
    "files_of",
    "length",
    "minmax",
    "schema_of",
    "short_name",
    "stream_of",
]

SCALES = ("none", "codes", "filecodes", "zscore", "minmax")


@dataclass(frozen=True)
class FileData:
    """A file as a data set, as `prepare` needs it."""

    name: str
    block: Block
    conversion: str | None = None

    @property
    def positive(self) -> object:
        """Return None: F-measures of files are those of the rarer label."""
        return None


@dataclass(frozen=True)
class CellStream:
    """A prepared stream with the checksums of the data and of the stream."""

    prepared: Prepared
    positive: Any
    data_sha: str
    stream_sha: str


@dataclass(frozen=True)
class Files:
    """Files that are read one after the other, with options of `streams.read`."""

    paths: tuple[str, ...]
    target: str | None
    reading: dict[str, Any]
    content: str
    """sha256 (16 digits) of their content."""


def file_name(paths: Sequence[str], target: str | None, reading: Mapping[str, Any] | None = None) -> str:
    """Return the name of files in cells, with the checksum of their content: a changed file is another data set."""
    facts = {
        "content": _content(paths),
        "target": target,
        "reading": dict(reading or {}),
        "paths": [str(Path(path).absolute()) for path in paths],
    }
    return f"file:{json.dumps(facts, sort_keys=True, ensure_ascii=False)}"


def files_of(name: str) -> Files | None:
    """Return the files of a name in cells; None for a data set."""
    if not name.startswith("file:"):
        return None
    facts = json.loads(name.removeprefix("file:"))
    return Files(tuple(facts["paths"]), facts["target"], facts["reading"], facts["content"])


def short_name(name: str) -> str:
    """Shorten the name of a data set for a line of text."""
    files = files_of(name)
    return name if files is None else " ".join(Path(path).name for path in files.paths)


def _content(paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()[:16]


def length(name: str) -> int:
    """Return the number of rows of a data set without reading it; 0 if unknown."""
    if name.startswith("made:"):
        from varifold.bench.crowd import ROWS

        return ROWS
    if name.startswith("file:"):
        return 0
    from varifold.datasets import find

    return find(name).rows


@lru_cache(maxsize=1)
def _loaded(name: str) -> tuple[Any, str]:
    files = files_of(name)
    if files is not None:
        data: Any = _read(files)
    elif name.startswith("made:"):
        from varifold.bench.crowd import made

        data = made(name)
    else:
        from varifold.datasets import load

        data = load(name)
    return data, checksum(data.block)


def _read(files: Files) -> FileData:
    from varifold.streams import read

    name = " ".join(files.paths)
    if _content(files.paths) != files.content:
        raise DataError(f"{name} has changed since the run was planned; start it again")
    options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in files.reading.items()}
    blocks = list(read(list(files.paths), target=files.target, unlabelled="keep", **options).blocks())
    if not blocks:
        raise DataError(f"{name} has no instances")
    return FileData(name, concatenate(blocks))


@dataclass(frozen=True)
class Schema:
    """Columns of a data set, for learners that need them in advance."""

    numbers: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    """Values of each string column."""
    labels: tuple[Any, ...]
    """Empty if numbers are to be predicted."""


@lru_cache(maxsize=1)
def schema_of(name: str) -> Schema:
    """Return the columns, categories and labels of a data set."""
    block = _loaded(name)[0].block
    vocabulary = block.vocabulary
    numbers: list[str] = []
    levels: dict[str, list[str]] = {}
    for i in np.unique(block.indices).tolist():
        if vocabulary.is_indicator(i):
            column, level = vocabulary.level_of(i)
            levels.setdefault(column, []).append(level)
        else:
            numbers.append(vocabulary.name_of(i))
    labels = () if block.targets is not None else tuple(block.labels.values)
    return Schema(tuple(numbers), {column: tuple(each) for column, each in levels.items()}, labels)


@lru_cache(maxsize=2)
def _treated(name: str, steps: str) -> tuple[Any, str]:
    """Apply the steps of `Cell.scale` to a data set."""
    data, sha = _loaded(name)
    block = data.block
    for step in steps.split("+"):
        if step.startswith("positive="):
            continue
        if step.startswith("first="):
            block = block[: int(step.partition("=")[2])]
            continue
        if step not in SCALES:
            raise ParameterError(f"scale must be one of {', '.join(SCALES)}. Got {step!r} instead.")
        if step in ("codes", "filecodes"):
            block = coded(block, alphabetical=step == "codes")
        elif step != "none":
            block = zscore(block) if step == "zscore" else minmax(block)
    return (data if block is data.block else replace(data, block=block)), sha


def _positive(steps: str, usual: Any) -> Any:
    """Return the label of F-measures: the data set's, or the one that the steps name."""
    named = [step.partition("=")[2] for step in steps.split("+") if step.startswith("positive=")]
    return named[-1] if named else usual


@lru_cache(maxsize=2)
def _stream(data: str, scenario: str, shuffle: bool, scale: str, seed: int) -> CellStream:
    treated, sha = _treated(data, scale)
    prepared = prepare(treated, scenario, seed=seed, shuffle=shuffle)
    return CellStream(prepared, _positive(scale, treated.positive), sha, checksum(prepared.block))


def stream_of(cell: Cell) -> CellStream:
    """Return the stream of a cell; the last ones are cached, since many learners share them."""
    return _stream(*cell.stream)


def checksum(block: Block) -> str:
    """Return the sha256 (16 digits) of the features present, their values, and the labels or targets."""
    digest = hashlib.sha256()
    targets = [] if block.targets is None else [block.targets]
    for part in (block.indptr, block.indices, block.values, block.codes, *targets):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def coded(block: Block, *, alphabetical: bool = True) -> Block:
    """Convert string columns to numbers 0, 1, ..., by alphabetical order of their values or by order in the file."""
    old, new = block.vocabulary, Vocabulary()
    ids = np.zeros(old.size, dtype=block.indices.dtype)
    codes = np.full(old.size, np.nan)
    levels: dict[Any, list[tuple[str, int]]] = {}
    for i in np.unique(block.indices).tolist():
        column, level = old.level_of(i) if old.is_indicator(i) else (old.name_of(i), None)
        ids[i] = new.add(column)
        if level is not None:
            levels.setdefault(column, []).append((level, i))
    for pairs in levels.values():
        order = sorted(pairs) if alphabetical else sorted(pairs, key=lambda pair: pair[1])
        for code, (_, i) in enumerate(order):
            codes[i] = code
    values = np.where(np.isnan(codes[block.indices]), block.values, codes[block.indices])
    return Block(new, block.indptr, ids[block.indices], values, block.codes, block.labels, block.weights, block.targets)


def minmax(block: Block) -> Block:
    """Scale every number to [0, 1] over the whole block; this looks ahead and is only for reproducing papers.

    A feature that is constant becomes 0; indicators stay as they are.
    """
    size = block.vocabulary.size
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, block.indices, block.values)
    np.maximum.at(high, block.indices, block.values)
    kept = np.zeros(size, dtype=bool)
    kept[[i for i in np.unique(block.indices).tolist() if block.vocabulary.is_indicator(i)]] = True
    low[kept], high[kept] = 0.0, 1.0
    used = np.isfinite(low)
    span = np.where(used & (high > low), high - np.where(used, low, 0.0), 1.0)
    values = (block.values - low[block.indices]) / span[block.indices]
    return block.with_values(values)
