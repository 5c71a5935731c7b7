"""Registry of data sets, read from ``registry.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from varifold.base.nearest import nearest
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["Entry", "File", "find", "names"]


@dataclass(frozen=True)
class File:
    """A file of a set: its path below a data directory, the sha256 of its content, its URL."""

    path: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Entry:
    """A data set as the registry describes it; see the head of ``registry.toml`` for the label rules."""

    name: str
    title: str
    rows: int
    features: int
    classes: int
    types: str
    format: str
    licence: str
    citation: str
    page: str = ""
    note: str = ""
    aliases: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    archive: str | None = None
    bundled: str | None = None
    separator: str = ","
    header: bool = False
    columns: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    target: str = ""
    positive: str | int | None = None
    above: int | None = None
    equals: str | None = None
    only: tuple[int, ...] = ()
    omitted: str = "absent"
    width: int | None = None
    first: int | None = None
    complete: bool = False
    draw: tuple[int, ...] = ()
    onehot: tuple[str, ...] = ()
    boolean: dict[str, str] = field(default_factory=dict)
    mixed: str | None = None
    group: str = ""
    """``natural`` for streams whose features come and go by themselves, ``anomaly`` for sets with anomalies."""
    task: str = "classification"
    order: str = ""
    """How the rows are ordered, for a stream that is not permuted by default."""
    known: str = ""
    """When the truth of a row is known."""
    delay: int = 0
    """Number of rows after which the label of a row is known."""
    unit: str = "rows"
    """Instances of a natural stream: ``rows``, ``stays`` (all rows with one id) or ``hours ahead``."""
    time: str = ""
    id: str = ""
    recipe: str = ""
    """Module of ``benchmarks/natural`` that makes the file."""
    fixed: tuple[str, ...] = ()
    """Columns of ``stays`` that have one value."""


def _entry(raw: dict[str, Any]) -> Entry:
    files = tuple(File(**f) for f in raw.pop("file", []))
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in raw.items()}
    return Entry(files=files, **fields)


@cache
def _entries() -> dict[str, Entry]:
    text = resources.files("varifold.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return {entry.name: entry for entry in map(_entry, tomllib.loads(text)["set"])}


def names() -> list[str]:
    """Return the names of all registered data sets."""
    return list(_entries())


def find(name: str) -> Entry:
    """Return the entry of a name or an alias."""
    if not isinstance(name, str):
        raise ParameterError(f"the name of a data set is a string. Got {name!r} instead.")
    entries = _entries()
    if name in entries:
        return entries[name]
    aliases = {alias: entry for entry in entries.values() for alias in entry.aliases}
    if name in aliases:
        return aliases[name]
    file = "; it is a file: give it without --data, to a table as a function that reads it"
    raise UnknownNameError(
        f"no data set is called {name!r}"
        + (file if Path(name).is_file() else f"{nearest(name, [*entries, *aliases])} (`varifold data list` shows all)")
    )
