"""Users' own data sets: functions that return the data, named by entry point or by path."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from varifold._engine.data.block import Block, concatenate
from varifold.base.blocks import to_block
from varifold.base.plugins import entry_points_of, from_entry_point, from_path
from varifold.datasets.registry import Entry
from varifold.errors import DataError
from varifold.streams.stream import Stream

__all__ = ["GROUP", "OwnData", "is_own", "own_data", "own_names"]

GROUP = "varifold.datasets"
"""Entry points of this group, ``name = "package.module:function"``, are data sets of third parties."""


@dataclass(frozen=True)
class OwnData:
    """Data that a user's function returned, described like a registered set."""

    entry: Entry
    block: Block


def own_names() -> list[str]:
    """Return the names of the data sets of installed packages."""
    return list(entry_points_of(GROUP))


def is_own(name: str) -> bool:
    """Return whether a name is a path ``package.module:function`` or an entry point."""
    if not isinstance(name, str):
        return False
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", name) is not None or name in entry_points_of(GROUP)


@lru_cache(maxsize=2)
def own_data(name: str) -> OwnData:
    """Call the function of a name; it returns a Block, a stream of `streams.read`, or X and y as `to_block` has."""
    function: Any = from_entry_point(GROUP, name) if name in entry_points_of(GROUP) else from_path(name, "data set")
    if not callable(function):
        raise DataError(
            f"the data set {name!r} is a {type(function).__name__}; it must be a function without arguments"
        )
    data = function()
    if isinstance(data, tuple) and len(data) == 2:
        data = to_block(*data)
    if isinstance(data, Stream):
        data = concatenate(blocks) if (blocks := list(data.blocks())) else None
    if not isinstance(data, Block) or (data.codes < 0).all():
        raise DataError(
            f"the function of the data set {name!r} returned a {type(data).__name__}; it must return a Block with "
            "labels, X and y, or streams.read(...) of files with labels"
        )
    return OwnData(_entry(name, function, data), data)


def _entry(name: str, function: Any, block: Block) -> Entry:
    columns = block.vocabulary.column_array()[block.indices]
    return Entry(
        name=name,
        title=(inspect.getdoc(function) or name).split("\n", 1)[0],
        rows=len(block),
        features=len(set(columns.tolist())),
        classes=len(block.labels),
        types="",
        format="own",
        licence="",
        citation="",
    )
