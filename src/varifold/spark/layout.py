"""Columns of a Spark frame, and its rows as lines of JSON: one string per row goes from the JVM to Python.

A line is an object with the key ``k``, the id ``i``, the order ``o``, the label ``y``, the weight ``w``, the numbers
``n`` and the strings ``s`` of a row; what a row does not have is left out. `Row` reads it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from varifold.base.json_text import read_json
from varifold.base.nearest import nearest
from varifold.errors import DataError, MissingExtraError, ParameterError, UnknownNameError

Columns = str | Sequence[str] | None
BUCKET, LINE = "bucket", "line"
_PLAIN = ("string", "byte", "short", "integer", "long")
"""Types of keys and ids: JSON keeps them as they are."""
_LABELS = (*_PLAIN, "boolean", "double", "float")


def spark_module(name: str) -> Any:
    """Import a module of pyspark; the error names what is missing."""
    try:
        for needed in ("pandas", "pyarrow", "pyspark"):
            importlib.import_module(needed)
        return importlib.import_module(f"pyspark.{name}")
    except ImportError as error:
        raise MissingExtraError(
            f"varifold.spark needs {error.name}; install it with: pip install 'varifold[spark]' (and Java 17)"
        ) from error


class Row(NamedTuple):
    """One row of a stream: an instance, a label, or both."""

    line: str
    key: Any
    id: Any
    order: Any
    label: Any
    weight: float | None
    x: dict[str, Any] | None
    """Instance; None if the row is the label of an earlier one."""

    @classmethod
    def parse(cls, line: str) -> Row:
        """Read the line that `Layout.line` wrote."""
        row = read_json(line)
        numbers, words = row.get("n"), row.get("s")
        if numbers is None and words is None:
            x = None
        else:
            x = numbers or {}
            if '"NaN"' in line or 'Infinity"' in line:  # JSON has no such numbers: Spark writes them as strings
                x = {name: float(value) if isinstance(value, str) else value for name, value in x.items()}
            x = {**x, **words} if words else x
        return cls(line, row.get("k"), row.get("i"), row.get("o"), row.get("y"), row.get("w"), x)


@dataclass(frozen=True)
class Layout:
    """Roles of the columns of a frame.

    `numbers` and `words` are each the name of a map column (string to double, string to string) or a list of plain
    columns, whose names are then the names of the features.
    """

    key: str | None
    numbers: Columns
    words: Columns
    label: str | None
    id: str | None = None
    order: str | None = None
    weight: str | None = None

    def check(self, frame: Any) -> None:
        """Raise an error for columns that are missing or whose type cannot be used."""
        if self.numbers is None and self.words is None:
            raise ParameterError("pass `numbers` or `words`: the columns of the features")
        self._check_type(frame, "key", self.key, _PLAIN)
        self._check_type(frame, "id", self.id, _PLAIN)
        self._check_type(frame, "label", self.label, _LABELS)
        for name in (self.order, self.weight, *_plain(self.numbers), *_plain(self.words)):
            if name is not None:
                _field(frame, name)
        for given in (self.numbers, self.words):
            if isinstance(given, str) and _field(frame, given).dataType.typeName() != "map":
                raise DataError(
                    f"the column {given!r} is not a map; pass a map, or a list of plain columns: [{given!r}]"
                )

    def _check_type(self, frame: Any, role: str, name: str | None, allowed: Sequence[str]) -> None:
        if name is None:
            return
        kind = _field(frame, name).dataType.typeName()
        if kind not in allowed:
            raise DataError(f"the {role} column {name!r} holds {kind}; cast it to one of {', '.join(allowed)}")

    def type_of(self, frame: Any, role: str) -> Any:
        """Return the Spark type of the key, id or label; string if there is no such column."""
        name = getattr(self, role)
        types = spark_module("sql.types")
        return types.StringType() if name is None else _field(frame, name).dataType

    def line(self, frame: Any) -> Any:
        """Return the expression that makes a line of a row."""
        functions = spark_module("sql.functions")
        parts = []
        for letter, name in (("k", self.key), ("i", self.id), ("y", self.label)):
            if name is not None:
                parts.append(functions.col(f"`{name}`").alias(letter))
        if self.order is not None:
            parts.append(_sortable(frame, self.order).alias("o"))
        if self.weight is not None:
            parts.append(functions.col(f"`{self.weight}`").cast("double").alias("w"))
        if self.numbers is not None:
            parts.append(_features(self.numbers, "double").alias("n"))
        if self.words is not None:
            parts.append(_features(self.words, "string").alias("s"))
        return functions.to_json(functions.struct(*parts), {"ignoreNullFields": "true"})


def _plain(given: Columns) -> list[str]:
    return [] if given is None or isinstance(given, str) else list(given)


def _field(frame: Any, name: str) -> Any:
    if name not in frame.columns:
        raise UnknownNameError(f"the frame has no column {name!r}{nearest(name, frame.columns)}")
    return frame.schema[name]


def _sortable(frame: Any, name: str) -> Any:
    """Convert a time to microseconds; numbers stay as they are."""
    functions = spark_module("sql.functions")
    column = functions.col(f"`{name}`")
    kind = _field(frame, name).dataType.typeName()
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return functions.unix_micros(column.cast("timestamp"))
    if kind not in ("byte", "short", "integer", "long", "double", "float"):
        raise DataError(f"the order column {name!r} holds {kind}; use numbers or times")
    return column


def _features(columns: str | Sequence[str], kind: str) -> Any:
    """Return the features as one column; null if the row has none."""
    functions = spark_module("sql.functions")
    if isinstance(columns, str):
        return functions.col(f"`{columns}`").cast(f"map<string,{kind}>")
    cells = [functions.col(f"`{name}`").cast(kind).alias(name) for name in columns]
    any_cell = functions.coalesce(*[functions.col(f"`{name}`").cast("string") for name in columns])
    return functions.when(any_cell.isNotNull(), functions.struct(*cells))
