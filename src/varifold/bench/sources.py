"""Data sets by the name a cell has for them, scaled as a paper did, and made into streams."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from varifold._engine.block import concatenate
from varifold.base import Block
from varifold.bench.cell import Cell
from varifold.errors import DataError, ParameterError
from varifold.streams import Prepared, prepare, zscore

__all__ = ["FileData", "Stream", "file_name", "length", "minmax", "stream_of"]

SCALES = ("none", "zscore", "minmax")


@dataclass(frozen=True)
class FileData:
    """A file as a data set: what `prepare` asks of one."""

    name: str
    block: Block
    conversion: str | None = None

    @property
    def positive(self) -> object:
        """F-measures of files are about the rarer label."""
        return None


@dataclass(frozen=True)
class Stream:
    """A prepared stream with the checksums of the data and of what is left of them."""

    prepared: Prepared
    positive: Any
    data_sha: str
    stream_sha: str


def file_name(path: str, target: str) -> str:
    """The name of a file in cells; holds the checksum of its content, so that a changed file is another data set."""
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    return f"file:{content}:{target}:{Path(path).absolute()}"


def length(name: str) -> int:
    """Rows of a data set as far as they are known without reading it; 0 where they are not."""
    if name.startswith("made:"):
        from varifold.bench.crowd import ROWS

        return ROWS
    if name.startswith("file:"):
        return 0
    from varifold.datasets import find

    return find(name).rows


@lru_cache(maxsize=1)
def _loaded(name: str) -> tuple[Any, str]:
    if name.startswith("file:"):
        _, content, target, path = name.split(":", 3)
        found: Any = _file(path, target, content)
    elif name.startswith("made:"):
        from varifold.bench.crowd import made

        found = made(name)
    else:
        from varifold.datasets import load

        found = load(name)
    return found, checksum(found.block)


def _file(path: str, target: str, content: str) -> FileData:
    from varifold.streams import read

    if hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] != content:
        raise DataError(f"{path} has changed since the run was planned; start it again")
    blocks = list(read([path], target=target).blocks())
    if not blocks:
        raise DataError(f"{path} has no instances")
    return FileData(Path(path).name, concatenate(blocks))


@lru_cache(maxsize=2)
def _scaled(name: str, scale: str) -> tuple[Any, str]:
    found, sha = _loaded(name)
    if scale == "none":
        return found, sha
    if scale not in SCALES:
        raise ParameterError(f"scale must be one of {', '.join(SCALES)}. Got {scale!r} instead.")
    return replace(found, block=zscore(found.block) if scale == "zscore" else minmax(found.block)), sha


@lru_cache(maxsize=2)
def _stream(data: str, scenario: str, shuffle: bool, scale: str, seed: int) -> Stream:
    found, sha = _scaled(data, scale)
    prepared = prepare(found, scenario, seed=seed, shuffle=shuffle)
    return Stream(prepared, found.positive, sha, checksum(prepared.block))


def stream_of(cell: Cell) -> Stream:
    """The stream of a cell; the last ones are kept, since many learners see the same."""
    return _stream(*cell.stream)


def checksum(block: Block) -> str:
    """sha256 (16 digits) of which features are there, their values and the labels."""
    digest = hashlib.sha256()
    for part in (block.indptr, block.indices, block.values, block.codes):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def minmax(block: Block) -> Block:
    """Every number scaled to [0, 1] over the whole block; looks ahead, for reproducing papers only.

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
    return Block(block.vocabulary, block.indptr, block.indices, values, block.codes, block.labels, block.weights)
