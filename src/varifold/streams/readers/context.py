"""Context of one stream, shared by its readers: options, names, labels, types, rows that could not be read."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from varifold._engine.names.vocabulary import Labels, Vocabulary
from varifold.base.clock import shown_time
from varifold.base.nearest import nearest
from varifold.base.number_texts import MOST, are_numbers, warn_of_numbers
from varifold.base.plural import plural
from varifold.base.text_columns import FEWEST_DIFFERENT, are_identifiers, are_sentences
from varifold.errors import DataError, ParameterError, VarifoldWarning
from varifold.streams.readers._numbers import not_numbers, parse_number
from varifold.streams.readers.dates import Dates, reject_dates
from varifold.streams.readers.notation import (
    POINT,
    THOUSANDS,
    Notation,
    detect_notations,
    main_unit,
    number_of,
    unit_of,
    without_thousands,
)
from varifold.streams.stream import BLOCK_CELLS

__all__ = ["ABSENT", "MAX_LINE", "Column", "Context", "bag_of_words", "inferred_type"]

ABSENT = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
TYPES = ("numeric", "category", "text")
SAMPLE = 1000
"""Number of rows from which the types of columns are inferred."""
MAX_LINE = 1 << 26
"""Default for the largest number of bytes of a line."""
NAME_ENCODING = "name the encoding, such as --encoding latin-1"
FEWEST_ROWS = 10
"""A shorter stream may have a single label by chance."""
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "target_type": ("class", "number", None),
    "on_error": ("raise", "skip"),
    "unlabelled": ("raise", "keep"),
    "omitted": ("absent", "zero"),
}
"""Options that are one of a few values."""
_UNIX_TIMES = [(1e9 * unit, 4e9 * unit) for unit in (1, 1e3, 1e6, 1e9)]
"""The years 2001 to 2096 in seconds, milliseconds, microseconds and nanoseconds."""
_LARGEST = 4e18
"""No column counts further, and no time in nanoseconds is later."""
_COUNTER = re.compile(r"(^|[^a-z])(id|idx|index|row|record|nr|no|number)$")
"""Names of columns that may count the rows."""
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass
class Column:
    """A column and its type so far.

    `type` is numeric, category or text; `given` is whether the caller set it, `revised` whether later rows had
    strings among the numbers (each such string is a category of the column).
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
    thousands: str | None
    header: bool
    max_line: int
    unlabelled: str = "raise"
    dates: Dates = field(default_factory=lambda: Dates({}, None))
    key: str | None = None
    """A feature that every row must have."""
    block_cells: int = BLOCK_CELLS
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    labels: Labels = field(default_factory=Labels)
    columns: dict[str | int, Column] = field(default_factory=dict)
    rows: int = 0
    """Rows read so far."""
    notations: dict[str, Notation] = field(default_factory=dict)
    """Notation of numbers by column in the files so far, if it is not a plain decimal point."""
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    names_seen: set[str] = field(default_factory=set)
    """Names of the columns so far, features or not."""
    period: tuple[str, str] | None = None
    """First and last time so far."""
    more_files: bool = False
    """Whether further files may bring further columns."""
    warned: set[str | int] = field(default_factory=set)
    """Columns of mixed numbers and texts that were reported."""
    with_units: dict[str | int, list[str]] = field(default_factory=dict)
    """Samples of the columns of numbers with a unit that are not reported yet."""
    doubtful: set[str | int] = field(default_factory=set)
    """Columns whose points may separate thousands that were reported."""
    names_only: bool = False
    """Whether only the names of the columns are needed: no errors or warnings about their content."""
    encodings: list[str] = field(default_factory=list)
    """Encoding of each file, as given or detected."""
    undeclared: bool = False
    """Whether the source (JSON lines, dicts) does not declare its columns."""

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
        for name, role in self.special().items():
            if name in self.dates.parts and role != "time":
                raise ParameterError(f"the column {name!r} is given as {role} and in dates; it can be only one of them")
        for option, choices in _CHOICES.items():
            if (given := getattr(self, option)) not in choices:
                *first, last = map(repr, choices)
                raise ParameterError(f"{option} must be {', '.join(first)} or {last}. Got {given!r} instead.")
        if not (self.delimiter is None or _is_ascii_character(self.delimiter)):
            raise ParameterError(f"delimiter must be one ASCII character. Got {self.delimiter!r} instead.")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal must be '.' or ','. Got {self.decimal!r} instead.")
        if self.thousands not in (None, *THOUSANDS) or (self.decimal or "") == self.thousands:
            allowed = ", ".join(repr(given) for given in THOUSANDS if given != self.decimal)
            raise ParameterError(f"thousands must be one of {allowed}. Got {self.thousands!r} instead.")
        for option in ("block_rows", "max_line"):
            number = getattr(self, option)
            if not isinstance(number, int) or number < 1:
                raise ParameterError(f"{option} must be a whole number >= 1. Got {number!r} instead.")

    def restart(self) -> None:
        """Forget the rows of an earlier pass."""
        self.rows = self.skipped = 0
        self.period = None
        self.problems.clear()

    def note_times(self, times: Sequence[Any] | None) -> None:
        """Note the first and the last time of rows that were read."""
        known = [text for text in (_first_time(times or ()), _first_time(reversed(times or ()))) if text]
        if known:
            self.period = (known[0] if self.period is None else self.period[0], known[-1])

    def failed(self, file: str, line: int, column: str | int | None, message: str) -> None:
        """Raise an error for a row that cannot be read, or count it if rows may be skipped."""
        where = f"{file}, line {line:,}" + ("" if column is None else f", column {column!r}")
        if self.on_error == "raise":
            raise DataError(f"{where}: {message}")
        self.skipped += 1
        if len(self.problems) < 20:
            self.problems.append(f"{where}: {message}")

    def too_long(self, hint: str = "") -> str:
        """Return the message about a line, or a CSV record, of more than `max_line` bytes."""
        size = f"{self.max_line >> 20} MB" if self.max_line >= 1 << 20 else f"{self.max_line:,} bytes"
        return f"longer than {size}{hint}; a larger max_line reads it"

    def no_key(self, names: Iterable[Any]) -> str:
        """Return the message about a row with these columns that has no key."""
        hint = nearest(str(self.key), [str(name) for name in names if name != self.key])
        return f"no key in column {self.key!r}{hint}; fill it in, or leave such rows out with --on-error skip"

    def special(self) -> dict[str, str]:
        """Map the columns that are not features to their roles."""
        return {name: role for role, name in self._roles().items() if name is not None}

    def _roles(self) -> dict[str, str | None]:
        return {"target": self.target, "id": self.id, "time": self.time, "weight": self.weight}

    def column(self, name: str | int, cells: Iterable[str], *, typed: bool = False, decimal: str = ".") -> Column:
        """Return the column of this name; the type of a new one is given by the caller or inferred from these cells.

        `typed` is whether the source distinguishes numbers from texts, as JSON does.
        """
        column = self.columns.get(name)
        if column is None:
            given = self.types.get(str(name))
            sample = list(cells) if given in (None, "numeric") else []
            column = Column(name, given or inferred_type(sample, decimal), given is not None)
            if given == "numeric" and typed:
                self.add_unit(name, sample, "the data")
            if not self.names_only:
                self._check_cells(column, sample, typed, decimal)
            self.columns[name] = column
        return column

    def _check_cells(self, column: Column, sample: list[str], typed: bool, decimal: str) -> None:
        """Reject dates, and warn about cells of a new column that are probably meant otherwise than they are read."""
        name, inferred_category = column.name, column.type == "category" and not column.given
        if column.type != "numeric":  # no number is written as a date
            reject_dates(name, sample)
        if inferred_category:
            self._note_unit(name, sample)
        if inferred_category and not typed:
            self._warn_numbers(name, sample, decimal)
        if typed and not column.given and name != self.key:
            self._warn_texts(name, sample)
        texts_of_numbers = typed and column.type == "numeric" and not column.given  # which stay texts
        if inferred_category or texts_of_numbers:
            self._warn_identifier(name, sample)
        if column.type == "numeric" and not column.given and not typed:
            self._warn_codes(name, sample)
            self.warn_of_counter(name, [parse_number(cell, decimal) for cell in sample])

    def leave_out_index(self, name: str, cells: Sequence[Any], file: str) -> None:
        """Ignore a column without a name that numbers or names the rows, unless an option names it; warn once."""
        named = {*self.special(), *self.ignore, *self.types, *self.dates.parts, self.key}
        if name in named or not _identify(cells):
            return
        self.ignore = frozenset({*self.ignore, name})
        if not self.names_only:
            warnings.warn(
                f"the first column of {file} has no name and a different value in each row, such as {cells[0]!r}: it "
                "is left out, as an index that pandas or R wrote; to keep it, give its type, "
                f"types={{{name!r}: 'category'}} (--types {name}=category)",
                VarifoldWarning,
                stacklevel=2,
            )

    def add_unit(self, name: str | int, sample: Sequence[str], file: str) -> str:
        """Return the unit of the numbers of a column whose type is given as numeric, and report a new one.

        Raise an error if it is not that of earlier files.
        """
        known = self.notations.get(str(name), self.written)
        unit = main_unit(sample)
        if not unit or unit == known.unit:
            return known.unit
        if known.unit:
            raise DataError(
                f"{file}: column {name!r} has the unit {unit!r}, and had {known.unit!r} before; convert one of them"
            )
        self.notations[str(name)] = known._replace(unit=unit)
        if not self.names_only:
            text = next(text for text in sample if unit in text)
            warnings.warn(
                f"column {name!r} is read without its unit {unit!r}, such as {text!r}", VarifoldWarning, stacklevel=2
            )
        return unit

    def _note_unit(self, name: str | int, sample: list[str]) -> None:
        """Note a column of numbers with a unit, each of which becomes a category."""
        if name not in self.warned and unit_of(sample) is not None:
            self.warned.add(name)
            self.with_units[name] = sample

    def report_units(self) -> None:
        """Warn about the columns noted, all at once, with the option that reads their numbers."""
        if not self.with_units:
            return
        samples, self.with_units = self.with_units, {}
        names = list(samples)
        if len(names) == 1:
            unit = unit_of(samples[names[0]])
            what = f"column {names[0]!r} holds numbers with the unit {unit!r}, such as {_some(samples[names[0]])}"
        else:
            first = ", ".join(f"{name!r} ({_some(samples[name][:1])})" for name in names)
            what = f"{len(names):,} columns hold numbers with units: {first}"
        given, option = ", ".join(f"{name!r}: 'numeric'" for name in names), ",".join(f"{n}=numeric" for n in names)
        warnings.warn(
            f"{what}; each is read as a separate category; types={{{given}}} (--types {option}) reads the numbers "
            "without the unit, 'category' suppresses this warning",
            VarifoldWarning,
            stacklevel=2,
        )

    def _warn_numbers(self, name: str | int, sample: list[str], decimal: str) -> None:
        """Warn if a column is read as a category although at least half of its cells are numbers."""
        texts = not_numbers(sample, decimal)
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

    def _warn_identifier(self, name: str | int, sample: list[str]) -> None:
        """Warn about a column of texts that are all different: it identifies rows and takes memory for each."""
        if name in self.warned or name == self.key or not are_identifiers(sample):
            return
        self.warned.add(name)
        warnings.warn(
            f"column {name!r} has a different text in each of its first {len(sample):,} rows, such as {_some(sample)}, "
            f"and each is a feature; if it identifies the rows, leave it out, ignore=[{name!r}] (--ignore {name}), "
            f"else suppress this warning with types={{{name!r}: 'category'}} (--types {name}=category)",
            VarifoldWarning,
            stacklevel=2,
        )

    def _warn_codes(self, name: str | int, sample: list[str]) -> None:
        """Warn about whole numbers with leading zeros, such as postal codes; two digits may be a month or an hour."""
        digits = [cell.strip() for cell in sample if cell.strip().isdigit()]
        codes = [cell for cell in digits if len(cell) > 2 and cell[0] == "0"]
        if name in self.warned or not codes or len(digits) < len(sample):
            return
        self.warned.add(name)
        warnings.warn(
            f"column {name!r} is read as numbers, without leading zeros, such as those of {_some(codes)}; if they are "
            f"codes, read them as categories, types={{{name!r}: 'category'}} (--types {name}=category); 'numeric' "
            "suppresses this warning",
            VarifoldWarning,
            stacklevel=2,
        )

    def warn_of_counter(self, name: str | int, sample: Sequence[float | None]) -> None:
        """Warn about Unix times, and about a column called id, row or alike, that rise from row to row."""
        numbers = [number for number in sample if number is not None]
        if self.names_only or name in self.warned or name == self.key or len(numbers) < FEWEST_DIFFERENT:
            return
        times = any(low <= numbers[0] and numbers[-1] < high for low, high in _UNIX_TIMES)
        if not (times or _COUNTER.search(str(name).casefold())):
            return
        if numbers[-1] > _LARGEST or not all(
            low < high and float(high).is_integer() for low, high in pairwise(numbers)
        ):
            return
        self.warned.add(name)
        first = ", ".join(f"{number:.0f}" for number in numbers[:3])
        what = "reads like a Unix time" if times else "seems to number the rows"
        role = f"name it, time={name!r} (--time {name})" if times else f"name it, id={name!r} (--id {name})"
        warnings.warn(
            f"column {name!r} {what}: it rises in each of its first {len(numbers):,} rows ({first}, ...), and is a "
            f"feature; leave it out, ignore=[{name!r}] (--ignore {name}), or {role}, else suppress this warning "
            f"with types={{{name!r}: 'numeric'}} (--types {name}=numeric)",
            VarifoldWarning,
            stacklevel=2,
        )

    def _warn_texts(self, name: str | int, sample: list[str]) -> None:
        """Warn about a column of texts that are numbers, in a source that distinguishes them."""
        texts = list(dict.fromkeys(sample))[:MOST]
        if name not in self.warned and are_numbers(texts):
            self.warned.add(name)
            numeric = f"types={{{name!r}: 'numeric'}} (--types {name}=numeric)"
            if parse_number(texts[0], *self.written.separators) is None:
                numeric += " with decimal or thousands (--decimal, --thousands)"
            warn_of_numbers(name, texts[0], f"{numeric} reads the numbers, 'category' suppresses this warning")

    @property
    def written(self) -> Notation:
        """Return the notation of numbers in texts from which it is not detected."""
        return detect_notations({"": ()}, self.decimal, self.thousands, {}, "")[""]

    def report_thousands(self, notations: Mapping[str, Notation], cells: Mapping[str, Sequence[str]]) -> None:
        """Warn once about the columns in which separators of thousands were detected."""
        if not notations or self.thousands is not None or self.names_only:
            return
        name, notation = next(iter(notations.items()))
        thousands = notation.thousands
        cell, number = _first_number(cells[name], notation)
        others = "" if len(notations) == 1 else f" (and {len(notations) - 1:,} more)"
        warnings.warn(
            f"column {name!r}{others} is read with {thousands!r} between thousands: {cell} is {number:.15g}; if that "
            "is wrong, pass decimal or thousands (--decimal, --thousands)",
            VarifoldWarning,
            stacklevel=2,
        )

    def report_points(self, names: Sequence[str], cells: Mapping[str, Sequence[str]]) -> None:
        """Warn once about columns whose points may separate thousands, in a file that separates cells by semicolons."""
        new = [name for name in names if name not in self.doubtful]
        if not new:
            return
        self.doubtful.update(new)
        name = new[0]
        cell, number = _first_number(cells[name], POINT)
        others = "" if len(new) == 1 else f" (and {len(new) - 1:,} more)"
        warnings.warn(
            f"column {name!r}{others} is read with a decimal point: {cell} is {number:.15g}; if the point separates "
            "thousands, pass thousands='.' (--thousands .), else suppress this warning with decimal='.' (--decimal .)",
            VarifoldWarning,
            stacklevel=2,
        )

    def warn_revised_columns(self) -> None:
        """Warn, after the last row, about numeric columns with texts, each of which became a category."""
        revised = {c.name for c in self.columns.values() if c.revised and not c.given} - self.warned
        if not revised:
            return
        texts: dict[str | int, list[str]] = {name: [] for name in sorted(revised, key=str)}
        for i in range(1, self.vocabulary.size):
            if self.vocabulary.is_indicator(i):
                name, level = self.vocabulary.level_of(i)
                if name in texts:
                    texts[name].append(level)
        late = {name: found for name, found in texts.items() if name not in self.vocabulary}
        self._warn_late_columns(late)
        for name, found in texts.items():
            self.warned.add(name)
            if name in late:
                continue
            warnings.warn(
                f"the numeric column {name!r} also held {plural(len(found), 'text')} such as {_some(found)}; each is a "
                f'separate category: absent (--absent) names those that mean "not observed", and '
                f"types={{{name!r}: 'numeric'}} (--types {name}=numeric) suppresses this warning",
                VarifoldWarning,
                stacklevel=2,
            )

    def _warn_late_columns(self, texts: Mapping[str | int, list[str]]) -> None:
        """Warn once about columns that were empty where types were detected, and then held texts only."""
        if not texts:
            return
        name = next(iter(texts))
        held = ", ".join(f"{name!r} ({plural(len(found), 'text')})" for name, found in list(texts.items())[:8])
        more = f" and {len(texts) - 8:,} more" if len(texts) > 8 else ""
        warnings.warn(
            f"columns that were empty in the first rows hold texts such as {_some(texts[name])}: {held}{more}; each "
            f"is a separate category, types={{{name!r}: 'text'}} (--types {name}=text) splits them into words, "
            "'category' suppresses this warning",
            VarifoldWarning,
            stacklevel=2,
        )

    def warn_single_label(self) -> None:
        """Warn, after the last row, if every label was the same."""
        if self.rows < FEWEST_ROWS or len(self.labels) != 1:
            return
        column = "the target" if self.target is None else f"the target column {self.target!r}"
        warnings.warn(
            f"{column} has a single value, {self.labels.values[0]!r}, in all {self.rows:,} rows; there is nothing to "
            "distinguish",
            VarifoldWarning,
            stacklevel=2,
        )

    def require(self, names: Iterable[str | int], file: str) -> None:
        """Check that the columns named by options exist: target, id, time and weight in each file, others in one."""
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
        """Map the columns that options name to the option."""
        dates = dict.fromkeys(self.dates.parts, "dates")
        return dict.fromkeys(self.ignore, "ignore") | dict.fromkeys(self.types, "types") | dates

    def warn_absent_columns(self) -> None:
        """Warn, after the last row of a source without a header, about columns that options name and no row had."""
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


def _first_time(times: Iterable[Any]) -> str:
    """Return the text of the first time that is known; empty without one."""
    return next(filter(None, map(shown_time, times)), "")


def _identify(cells: Sequence[Any]) -> bool:
    """Return whether cells may number or name rows: different, whole numbers or texts."""
    if len(cells) < 2 or len(set(map(str, cells))) < len(cells):
        return False
    numbers = [parse_number(str(cell)) for cell in cells]
    return not any(isinstance(cell, float) for cell in cells) and all(
        number is None or float(number).is_integer() for number in numbers
    )


def _first_number(cells: Iterable[str], notation: Notation) -> tuple[str, float]:
    """Return the first number with a separator and its value; texts such as "n.a." have the separator as well."""
    separator = notation.thousands or notation.decimal
    numbers = ((cell, number_of(cell, notation)) for cell in cells if without_thousands(cell, separator) != cell)
    return next((cell, number) for cell, number in numbers if number is not None)


def _some(texts: list[str]) -> str:
    """Quote the first three different texts."""
    return ", ".join(repr(text if len(text) <= 30 else f"{text[:30]}...") for text in list(dict.fromkeys(texts))[:3])


def _is_ascii_character(given: object) -> bool:
    return isinstance(given, str) and len(given) == 1 and given.isascii()


def _strings(option: str, given: Any) -> list[str]:
    """Return the items of an option that is a list of strings."""
    items: list[Any] = (
        list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else [None]
    )
    if not all(isinstance(item, str) for item in items):
        raise ParameterError(f"{option} must be a list of strings. Got {given!r} instead.")
    return items


def bag_of_words(text: str) -> dict[str, float]:
    """Count the words of a text, in lower case."""
    return dict(Counter(word.lower() for word in _WORD.findall(text)))


def inferred_type(cells: Iterable[str], decimal: str = ".") -> str:
    """Infer the type of a column from a sample of its cells, without absent ones.

    A column is numeric if at most one cell in ten is no number; text if those are long and varied; else a category.
    """
    sample = list(cells)
    strings = not_numbers(sample, decimal)
    if 10 * len(strings) <= len(sample):
        return "numeric"
    return "text" if are_sentences(strings) else "category"
