"""Columns of a saved model and of the files that it is used on: rename some, report those that do not match."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from varifold.base.plural import plural
from varifold.base.spec import split_pairs
from varifold.ensemble.per_key import KeyedLearner
from varifold.monitor.column import REGULAR, patience
from varifold.streams.reading import ReadStream
from varifold.streams.scenarios.columns import Columns
from varifold.streams.stream import Batch

_MOST = 5
"""Names that a message shows."""


def add_rename(parser: Any, condition: str = "") -> None:
    """Declare --rename."""
    parser.add_argument(
        "--rename", type=renames, metavar="OLD=NEW,...", help=f"{condition}features that have other names in FILE"
    )


def renames(text: str) -> dict[str, str]:
    """Parse ``OLD=NEW,...`` to a dict of old and new names."""
    found: dict[str, str] = {}
    for old, new in split_pairs(text, last=True):
        if not new:
            raise argparse.ArgumentTypeError(f"{old!r} is not of the form OLD=NEW")
        found[old] = new
    return found


def rename(learner: Any, names: Mapping[str, str] | None) -> None:
    """Rename features of a learner, and the columns whose types and notations it remembers."""
    if not names:
        return
    learner.rename(names)
    remembered = {option: learner.reading.get(option, {}) for option in ("types", "notations")}
    new = {option: {names.get(n, n): value for n, value in values.items()} for option, values in remembered.items()}
    learner.reading = {**learner.reading, **new}


class Match:
    """Compares the columns of the rows that a model reads with those that it learned, as they were at first."""

    def __init__(self, learner: Any, args: argparse.Namespace, stream: ReadStream) -> None:
        self._learner = learner
        self._stream = stream
        reading = learner.reading
        types = {**reading.get("types", {}), **(args.types or {})}
        texts = {name for name, kind in types.items() if kind == "text"}
        self._parted = {*texts, *reading.get("dates", {}), *(args.dates or {})}
        self._usual = {key: self._usual_columns(each) for key, each in _learners(learner)}
        self._known = {name for usual in self._usual.values() for name in usual}
        self._columns: Columns | None = None
        self._rows: Counter[Any] = Counter()  # by key; None without keys

    def look(self, batch: Batch) -> None:
        """Note the columns of a batch, and the keys of its rows."""
        self._columns = Columns(batch.block, self._columns)
        if isinstance(self._learner, KeyedLearner):
            self._rows.update(self._learner._split(x)[0] for x in batch.block.rows())
        else:
            self._rows[None] += len(batch.block)

    def warn_keys(self, model: str) -> None:
        """Report keys that have no learner."""
        unknown = {key: count for key, count in self._rows.items() if key not in self._usual}
        if unknown:
            rows = sum(unknown.values())
            _print(
                f"{plural(rows, 'row')} {'has a key' if rows == 1 else 'have keys'} without a learner in {model}, so "
                f"there is no prediction: {_some(unknown)}"
            )

    def warn(self, model: str) -> None:
        """Report columns that are in no row although they usually are, with those that are new."""
        self._parted |= {str(name) for name, column in self._stream.columns.items() if column.type == "text"}
        names = [] if self._columns is None else self._columns.names
        seen = {self._column_of(name) for name in names} - {getattr(self._learner, "key", None)}
        if self._known.isdisjoint(seen):
            _print(
                f"none of the columns ({_some(seen)}) is a feature that {model} learned ({_some(self._known)}): every "
                "row has the same prediction"
            )
            return
        absent = {
            name
            for key, rows in self._rows.items()
            for name, most in self._usual.get(key, {}).items()
            if name not in seen and name not in self._stream.ignored and rows > most
        }
        if absent:
            _print(_described(absent, seen - self._known, model, self._parted))

    def _usual_columns(self, learner: Any) -> dict[Any, float]:
        """Return, by column of a learner, how many rows in sequence may be without it; infinite for one that ended."""
        found: dict[Any, tuple[int, int, int]] = {}
        for name, feature in learner.features.items():
            column = self._column_of(name if feature.column is None else feature.column)
            first, last, count = found.get(column, (feature.first_seen, 0, 0))
            found[column] = min(first, feature.first_seen), max(last, feature.last_seen), count + feature.count
        usual = {}
        for column, (first, last, count) in found.items():
            absence = 1.0 - count / (last - first + 1)
            ended = learner.steps - last > patience(0, absence, REGULAR)
            usual[column] = float("inf") if ended else patience(0, absence, 0)
        return usual

    def _column_of(self, name: Any) -> Any:
        """Return the column of a feature: words of a text and parts of a date have it before a colon."""
        column = str(name).partition(":")[0]
        return column if column in self._parted else name


def _learners(learner: Any) -> Iterable[tuple[Any, Any]]:
    return learner.items() if isinstance(learner, KeyedLearner) else [(None, learner)]


def _described(absent: set[Any], new: set[Any], model: str, parted: set[Any]) -> str:
    """Describe columns of the model that are in no row, and columns that it does not know."""
    if len(absent) == len(new) == 1:
        (old,), (other,) = absent, new
        if old in parted:
            return f"the column {old!r} of {model} is in no row, and {other!r} is new: was it renamed in the file?"
        return (
            f"the column {old!r} of {model} is in no row, and {other!r} is new; if it was renamed, pass --rename "
            f"{old}={other}"
        )
    one = len(absent) == 1
    text = f"{plural(len(absent), 'column')} of {model} {'is' if one else 'are'} in no row ({_some(absent)})"
    if not new:
        return text
    return (
        f"{text}, and {len(new):,} {'is' if len(new) == 1 else 'are'} new ({_some(new)}); if some were renamed, "
        "pass --rename OLD=NEW,..."
    )


def _some(names: Iterable[Any]) -> str:
    shown = sorted(map(str, names))
    return ", ".join(shown[:_MOST]) + (f" and {len(shown) - _MOST:,} more" if len(shown) > _MOST else "")


def _print(message: str) -> None:
    print(f"varifold: {message}", file=sys.stderr)
