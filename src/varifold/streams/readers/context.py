"""What the readers of one stream share: tables, options, types, and what could not be read."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from varifold._engine.block import Block
from varifold._engine.vocabulary import Labels, Vocabulary
from varifold.base.nearest import nearest
from varifold.errors import DataError, ParameterError, VarifoldWarning

__all__ = ["ABSENT", "Chunk", "Column", "Context", "bag_of_words", "inferred"]

ABSENT = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
TYPES = ("numeric", "category", "text")
SAMPLE = 1000
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass
class Column:
    """A column as it has turned out so far.

    `type` is numeric, category or text; `given` says that the caller fixed it, `revised` that rows after the first
    sample had strings among the numbers (each such string is a category of the column).
    """

    name: str | int
    type: str
    given: bool = False
    revised: bool = False


@dataclass
class Chunk:
    """A block with the ids and times of its rows (None when the stream has no such column)."""

    block: Block
    ids: list[Any] | None = None
    times: list[Any] | None = None


@dataclass
class Context:
    """Options and shared tables of one stream."""

    target: str | None
    types: Mapping[str, str]
    absent: tuple[str, ...]
    on_error: str
    omitted: str
    id: str | None
    time: str | None
    weight: str | None
    ignore: frozenset[str]
    block_rows: int
    delimiter: str | None
    decimal: str | None
    header: bool
    block_cells: int = 1 << 20
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    labels: Labels = field(default_factory=Labels)
    columns: dict[str | int, Column] = field(default_factory=dict)
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    """Names of columns met so far, features or not."""
    more: bool = False
    """Whether further files may bring further columns."""
    loose: bool = False
    """Whether a source (JSON lines, dicts) does not say beforehand which columns it has."""

    def __post_init__(self) -> None:
        for name, kind in self.types.items():
            if kind not in TYPES:
                raise ParameterError(f"the type of column {name!r} must be one of {', '.join(TYPES)}. Got {kind!r}.")
        if self.on_error not in ("raise", "skip"):
            raise ParameterError(f"on_error must be 'raise' or 'skip'. Got {self.on_error!r} instead.")
        if self.omitted not in ("absent", "zero"):
            raise ParameterError(f"omitted must be 'absent' or 'zero'. Got {self.omitted!r} instead.")
        if self.block_rows < 1:
            raise ParameterError(f"block_rows must be a whole number >= 1. Got {self.block_rows} instead.")

    def failed(self, file: str, line: int, column: str | int | None, message: str) -> None:
        """Raise for a row that cannot be read, or count it when rows may be skipped."""
        where = f"{file}, line {line:,}" + ("" if column is None else f", column {column!r}")
        if self.on_error == "raise":
            raise DataError(f"{where}: {message}")
        self.skipped += 1
        if len(self.problems) < 20:
            self.problems.append(f"{where}: {message}")

    def special(self) -> dict[str, str]:
        """Column name -> what it is besides a feature."""
        named = {"target": self.target, "id": self.id, "time": self.time, "weight": self.weight}
        return {name: role for role, name in named.items() if name is not None}

    def column(self, name: str | int, cells: Iterable[str]) -> Column:
        """The column of this name; when new, its type comes from the caller or from these cells."""
        found = self.columns.get(name)
        if found is None:
            given = self.types.get(str(name))
            found = Column(name, given or inferred(cells), given is not None)
            self.columns[name] = found
        return found

    def require(self, names: Iterable[str | int], file: str) -> None:
        """Every column that was asked for must be there: roles in each file, types and omissions in one of them."""
        there = [str(name) for name in names]
        self.met.update(there)
        shown = ", ".join(there[:12]) + (", ..." if len(there) > 12 else "")
        for name, role in self.special().items():
            if name not in there:
                raise DataError(f"{file} has no {role} column {name!r}; its columns are: {shown}{nearest(name, there)}")
        if self.more or self.loose:
            return
        for name, wish in self.wishes().items():
            if name not in self.met:
                known = sorted(self.met)
                raise DataError(f"{file} has no column {name!r}, which {wish} names; its columns are: {shown}"
                                f"{nearest(name, known)}")  # fmt: skip

    def wishes(self) -> dict[str, str]:
        """Column name -> the option that names it as a feature."""
        return dict.fromkeys(self.ignore, "ignore") | dict.fromkeys(self.types, "types")

    def finished(self) -> None:
        """After the last row: say which columns were asked for and never came, where no header could tell before."""
        if not self.loose:
            return
        met = self.met | {str(name) for name in self.columns}
        for name, wish in (self.wishes() | self.special()).items():
            if name not in met:
                warnings.warn(f"no row had the column {name!r} that {wish} names{nearest(name, sorted(met))}",
                              VarifoldWarning, stacklevel=2)  # fmt: skip


def bag_of_words(text: str) -> dict[str, float]:
    """How often each word occurs, in lower case."""
    return dict(Counter(word.lower() for word in _WORD.findall(text)))


def is_number(text: str) -> bool:
    """Whether a cell spells a number in plain notation."""
    return re.fullmatch(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity|nan)", text, re.I) is not None


def inferred(cells: Iterable[str]) -> str:
    """The type of a column from a sample of its cells, absent ones left out.

    Numbers (up to one string in ten is taken for an exception), long and varied texts, or categories.
    """
    sample = list(cells)
    strings = [cell for cell in sample if not is_number(cell)]
    if 10 * len(strings) <= len(sample):
        return "numeric"
    words = sum(len(cell.split()) for cell in strings) / len(strings)
    return "text" if words >= 5 and 2 * len(set(strings)) > len(strings) and len(strings) >= 5 else "category"
