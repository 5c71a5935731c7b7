"""What the readers of one stream share: options, names, labels, types, and the rows that could not be read."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from varifold._engine.vocabulary import Labels, Vocabulary
from varifold.base.nearest import nearest
from varifold.errors import DataError, ParameterError, VarifoldWarning
from varifold.streams.readers.dates import Dates, refuse_dates

__all__ = ["ABSENT", "MAX_LINE", "Column", "Context", "bag_of_words", "inferred_type"]

ABSENT = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
TYPES = ("numeric", "category", "text")
SAMPLE = 1000
"""Rows from which the types of columns are inferred."""
MAX_LINE = 1 << 26
"""Default for the most bytes of a line."""
NAME_ENCODING = "name the encoding, such as --encoding latin-1"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_PLAIN_NUMBER = r"(?:[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|infinity|nan))"
_NUMBER = re.compile(_PLAIN_NUMBER, re.I)
_LINES_OF_NUMBERS = re.compile(rf"(?:{_PLAIN_NUMBER}\n)*+", re.I)


@dataclass
class Column:
    """A column and its type so far.

    `type` is numeric, category or text; `given` says that the caller set it, `revised` that later rows had strings
    among the numbers (each such string is a category of the column).
    """

    name: str | int
    type: str
    given: bool = False
    revised: bool = False


@dataclass
class Context:
    """Options and shared tables of one stream."""

    target: str | None
    target_type: str | None
    types: Mapping[str, str]
    absent: Sequence[str]
    on_error: str
    omitted: str
    id: str | None
    time: str | None
    weight: str | None
    ignore: Iterable[str]
    block_rows: int
    delimiter: str | None
    decimal: str | None
    header: bool
    max_line: int
    unlabelled: str = "raise"
    dates: Dates = field(default_factory=lambda: Dates({}, None))
    key: str | None = None
    """A feature that every row must have."""
    block_cells: int = 1 << 20
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    labels: Labels = field(default_factory=Labels)
    columns: dict[str | int, Column] = field(default_factory=dict)
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    names_seen: set[str] = field(default_factory=set)
    """Names of the columns so far, features or not."""
    more_files: bool = False
    """Whether further files may bring further columns."""
    warned: set[str | int] = field(default_factory=set)
    """Columns of mixed numbers and texts that were reported."""
    names_only: bool = False
    """Whether only the names of the columns are wanted: nothing is refused or warned of."""
    undeclared: bool = False
    """Whether the source (JSON lines, dicts) does not say beforehand which columns it has."""

    def __post_init__(self) -> None:
        if not isinstance(self.types, Mapping):
            raise ParameterError(f"types must be a dict of column name -> type. Got {self.types!r} instead.")
        for name, kind in self.types.items():
            if kind not in TYPES:
                raise ParameterError(f"the type of column {name!r} must be one of {', '.join(TYPES)}. Got {kind!r}.")
        self.absent = tuple(_strings("absent", self.absent))
        self.ignore = frozenset(_strings("ignore", self.ignore))
        for role, given in {**self._roles(), "key": self.key}.items():
            if not isinstance(given, str | None):
                raise ParameterError(f"{role} must be the name of a column. Got {given!r} instead.")
        taken = {**dict.fromkeys(self.ignore, "ignore"), **self.special()}
        if self.key in taken:
            raise ParameterError(
                f"the column {self.key!r} is given as key and as {taken[self.key]}; the key is a feature"
            )
        if self.target_type not in (None, "class", "number"):
            raise ParameterError(f"target_type must be 'class', 'number' or None. Got {self.target_type!r} instead.")
        if self.on_error not in ("raise", "skip"):
            raise ParameterError(f"on_error must be 'raise' or 'skip'. Got {self.on_error!r} instead.")
        if self.unlabelled not in ("raise", "keep"):
            raise ParameterError(f"unlabelled must be 'raise' or 'keep'. Got {self.unlabelled!r} instead.")
        if self.omitted not in ("absent", "zero"):
            raise ParameterError(f"omitted must be 'absent' or 'zero'. Got {self.omitted!r} instead.")
        if not (self.delimiter is None or _is_ascii_character(self.delimiter)):
            raise ParameterError(f"delimiter must be one ASCII character. Got {self.delimiter!r} instead.")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal must be '.' or ','. Got {self.decimal!r} instead.")
        for option in ("block_rows", "max_line"):
            number = getattr(self, option)
            if not isinstance(number, int) or number < 1:
                raise ParameterError(f"{option} must be a whole number >= 1. Got {number!r} instead.")

    def failed(self, file: str, line: int, column: str | int | None, message: str) -> None:
        """Raise for a row that cannot be read, or count it when rows may be skipped."""
        where = f"{file}, line {line:,}" + ("" if column is None else f", column {column!r}")
        if self.on_error == "raise":
            raise DataError(f"{where}: {message}")
        self.skipped += 1
        if len(self.problems) < 20:
            self.problems.append(f"{where}: {message}")

    def too_long(self, hint: str = "") -> str:
        """The message about a line, or a record of CSV, of more than `max_line` bytes."""
        size = f"{self.max_line >> 20} MB" if self.max_line >= 1 << 20 else f"{self.max_line:,} bytes"
        return f"longer than {size}{hint}; a larger max_line reads it"

    def no_key(self, names: Iterable[Any]) -> str:
        """The message about a row of these names that lacks its key."""
        hint = nearest(str(self.key), [str(name) for name in names if name != self.key])
        return f"no key in column {self.key!r}{hint}; fill it in, or leave such rows out by --on-error skip"

    def special(self) -> dict[str, str]:
        """Column name -> what it is instead of a feature."""
        return {name: role for role, name in self._roles().items() if name is not None}

    def _roles(self) -> dict[str, str | None]:
        return {"target": self.target, "id": self.id, "time": self.time, "weight": self.weight}

    def column(self, name: str | int, cells: Iterable[str], *, typed: bool = False) -> Column:
        """The column of this name; when new, its type comes from the caller or from these cells.

        `typed` says that the source tells numbers and texts apart, as JSON does.
        """
        found = self.columns.get(name)
        if found is None:
            given = self.types.get(str(name))
            sample = [] if given else list(cells)
            found = Column(name, given or inferred_type(sample), given is not None)
            if found.type != "numeric" and not self.names_only:  # no number is written as a date
                refuse_dates(name, sample)
            if found.type == "category" and given is None and not typed and not self.names_only:
                self._warn_numbers(name, sample)
            self.columns[name] = found
        return found

    def _warn_numbers(self, name: str | int, sample: list[str]) -> None:
        """Warn when a column is taken for a category although half of its cells or more are numbers."""
        texts = [cell for cell in sample if not is_number(cell)]
        if 2 * len(texts) > len(sample) or name in self.warned:
            return
        self.warned.add(name)
        warnings.warn(
            f"column {name!r} is read as a category, its numbers as well: {len(texts):,} of its first {len(sample):,} "
            f"cells are texts such as {_some(texts)}; types={{{name!r}: 'numeric'}} (--types {name}=numeric) keeps "
            'numbers as numbers, and absent (--absent) names texts that mean "not observed"',
            VarifoldWarning,
            stacklevel=2,
        )

    def warn_revised_columns(self) -> None:
        """After the last row: warn of numeric columns that held texts, each of which became a category."""
        revised = {c.name for c in self.columns.values() if c.revised and not c.given} - self.warned
        if not revised:
            return
        texts: dict[str | int, list[str]] = {name: [] for name in revised}
        for i in range(1, self.vocabulary.size):
            if self.vocabulary.is_indicator(i):
                name, level = self.vocabulary.level_of(i)
                if name in texts:
                    texts[name].append(level)
        for name, found in texts.items():
            self.warned.add(name)
            warnings.warn(
                f"the numeric column {name!r} also held {_count(found, 'text')} such as {_some(found)}; each is a "
                f'category of its own: absent (--absent) names those that mean "not observed", and '
                f"types={{{name!r}: 'numeric'}} (--types {name}=numeric) takes them without this warning",
                VarifoldWarning,
                stacklevel=2,
            )

    def require(self, names: Iterable[str | int], file: str) -> None:
        """Check that the columns the options name exist: target, id, time and weight in each file, others in one."""
        present = [str(name) for name in names]
        self.names_seen.update(present)
        shown = ", ".join(present[:12]) + (", ..." if len(present) > 12 else "")
        required = self.special() if self.key is None else {**self.special(), self.key: "key"}
        for name, role in required.items():
            if name not in present:
                raise DataError(
                    f"{file} has no {role} column {name!r}; its columns are: {shown}{nearest(name, present)}"
                )
        if self.more_files or self.undeclared:
            return
        for name, option in self._named_features().items():
            if name not in self.names_seen:
                raise DataError(
                    f"{file} has no column {name!r}, which {option} names; its columns are: {shown}"
                    f"{nearest(name, sorted(self.names_seen))}"
                )

    def _named_features(self) -> dict[str, str]:
        """Column name -> the option that names it."""
        dates = dict.fromkeys(self.dates.parts, "dates")
        return dict.fromkeys(self.ignore, "ignore") | dict.fromkeys(self.types, "types") | dates

    def warn_absent_columns(self) -> None:
        """After the last row of a source without a header: warn of columns that the options name and no row had."""
        if not self.undeclared:
            return
        seen = self.names_seen | {str(name) for name in self.columns}
        for name, option in (self._named_features() | self.special()).items():
            if name not in seen:
                warnings.warn(
                    f"no row had the column {name!r} that {option} names{nearest(name, sorted(seen))}",
                    VarifoldWarning,
                    stacklevel=2,
                )


def _some(texts: list[str]) -> str:
    """The first three different texts, quoted."""
    return ", ".join(repr(text if len(text) <= 30 else f"{text[:30]}...") for text in list(dict.fromkeys(texts))[:3])


def _count(found: list[str], noun: str) -> str:
    return f"{len(found):,} {noun}{'' if len(found) == 1 else 's'}"


def _is_ascii_character(given: object) -> bool:
    return isinstance(given, str) and len(given) == 1 and given.isascii()


def _strings(option: str, given: Any) -> list[str]:
    """The items of an option that takes several strings."""
    items: list[Any] = (
        list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else [None]
    )
    if not all(isinstance(item, str) for item in items):
        raise ParameterError(f"{option} must be a list of strings. Got {given!r} instead.")
    return items


def bag_of_words(text: str) -> dict[str, float]:
    """How often each word occurs, in lower case."""
    return dict(Counter(word.lower() for word in _WORD.findall(text)))


def is_number(text: str) -> bool:
    """Whether a cell spells a number in plain notation."""
    return _NUMBER.fullmatch(text) is not None


def _not_numbers(sample: list[str]) -> list[str]:
    """The cells that are no numbers. Most samples have none, which one match of all cells tells."""
    text = "\n".join([*sample, ""])
    if text.count("\n") == len(sample) and _LINES_OF_NUMBERS.fullmatch(text):
        return []
    return [cell for cell in sample if not is_number(cell)]


def inferred_type(cells: Iterable[str]) -> str:
    """The type of a column from a sample of its cells, absent ones left out.

    Numbers (up to one string in ten is taken for an exception), long and varied texts, or categories.
    """
    sample = list(cells)
    strings = _not_numbers(sample)
    if 10 * len(strings) <= len(sample):
        return "numeric"
    words = sum(len(cell.split()) for cell in strings) / len(strings)
    return "text" if words >= 5 and 2 * len(set(strings)) > len(strings) and len(strings) >= 5 else "category"
