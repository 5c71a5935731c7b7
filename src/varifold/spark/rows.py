"""Rows of a Spark frame as lines of JSON: one text per row goes from the JVM to Python, not maps and columns."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from varifold.base.nearest import nearest
from varifold.errors import DataError, MissingExtraError, ParameterError, UnknownNameError

Columns = str | Sequence[str] | None
BUCKET, LINE = "bucket", "line"
_PLAIN = ("string", "byte", "short", "integer", "long")
"""Types of keys and ids: what JSON gives back as it was."""
_LABELS = (*_PLAIN, "boolean", "double", "float")


def spark_module(name: str) -> Any:
    """A module of pyspark; a clear message where it, or what it needs, is missing."""
    try:
        for needed in ("pandas", "pyarrow", "pyspark"):
            importlib.import_module(needed)
        return importlib.import_module(f"pyspark.{name}")
    except ImportError as error:
        raise MissingExtraError(
            f"varifold.spark needs {error.name}; install it with: pip install 'varifold[spark]' (and Java 17)"
        ) from error


@dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    `numbers` and `words` are each the name of a map column (string to double, string to string) or a list of plain
    columns, whose names are then the names of the features.
    """

    key: str | None
    numbers: Columns
    words: Columns
    label: str
    id: str | None = None
    order: str | None = None
    weight: str | None = None

    def check(self, frame: Any) -> None:
        """Refuse columns that are not there, or of types that cannot be used."""
        if self.numbers is None and self.words is None:
            raise ParameterError("give `numbers` or `words`: the columns that hold the features")
        self._check_type(frame, "key", self.key, _PLAIN)
        self._check_type(frame, "id", self.id, _PLAIN)
        self._check_type(frame, "label", self.label, _LABELS)
        for name in (self.order, self.weight, *_plain(self.numbers), *_plain(self.words)):
            if name is not None:
                _field(frame, name)
        for given in (self.numbers, self.words):
            if isinstance(given, str) and _field(frame, given).dataType.typeName() != "map":
                raise DataError(
                    f"the column {given!r} is no map; give a map of features, or a list of plain columns: [{given!r}]"
                )

    def _check_type(self, frame: Any, role: str, name: str | None, allowed: Sequence[str]) -> None:
        if name is None:
            return
        found = _field(frame, name).dataType.typeName()
        if found not in allowed:
            raise DataError(f"the {role} column {name!r} holds {found}; cast it to one of {', '.join(allowed)}")

    def type_of(self, frame: Any, role: str) -> Any:
        """The Spark type of the key, id or label; text where there is no such column."""
        name = getattr(self, role)
        types = spark_module("sql.types")
        return types.StringType() if name is None else _field(frame, name).dataType

    def line(self, frame: Any) -> Any:
        """The expression that makes a line of JSON of a row; `varifold.spark.keyed` reads it."""
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
    """A time as microseconds; numbers as they are."""
    functions = spark_module("sql.functions")
    column = functions.col(f"`{name}`")
    kind = _field(frame, name).dataType.typeName()
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return functions.unix_micros(column.cast("timestamp"))
    if kind not in ("byte", "short", "integer", "long", "double", "float"):
        raise DataError(f"the order column {name!r} holds {kind}; give numbers or times")
    return column


def _features(given: Columns, kind: str) -> Any:
    """A map of features, null where the row has none."""
    functions = spark_module("sql.functions")
    if isinstance(given, str):
        return functions.col(f"`{given}`").cast(f"map<string,{kind}>")
    cells = [functions.col(f"`{name}`").cast(kind).alias(name) for name in given or ()]
    some = functions.coalesce(*[functions.col(f"`{name}`").cast("string") for name in given or ()])
    return functions.when(some.isNotNull(), functions.struct(*cells))
