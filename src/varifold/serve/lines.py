"""Read lines of JSON for `varifold follow`, one at a time, as `varifold run` reads a file of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from varifold.base.json_text import read_json, write_json
from varifold.base.nearest import nearest
from varifold.errors import DataError
from varifold.serve.core.errors import RejectedError
from varifold.streams.clock import looks_like_time
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers.context import ABSENT
from varifold.streams.readers.dates import Dates, reject_dates
from varifold.streams.readers.missing import is_missing
from varifold.streams.readers.records import flatten

_LARGEST_INT = 1 << 63
_LONGEST_ID = 200


def parse(line: bytes) -> dict[str, Any]:
    """Parse the object in a line, with nested ones as ``outer.inner``; the error locates the problem."""
    parsed = read_json(line)
    if type(parsed) is not dict:
        raise RejectedError(f"a {type(parsed).__name__} where an object {{...}} was expected")
    x: dict[str, Any] = {}
    flatten(x, parsed)
    return x


class Fields:
    """Roles of the fields of a line: label, id, key, ignored ones, and the parts of dates that are features.

    A string that looks like a date is rejected, unless its column is in `dates` or `categories`: every line is
    predicted before the next one is read, so its type cannot be inferred from later lines.
    """

    def __init__(
        self,
        target: str,
        id: str | None = None,
        *,
        key: str | None = None,
        time: str | None = None,
        ignore: Iterable[str] = (),
        dates: Mapping[str, Sequence[str]] | None = None,
        date_order: str | None = None,
        categories: Iterable[str] = (),
    ) -> None:
        self.target = target
        self.id = id
        self.key = key
        self.time = time
        self.ignore = frozenset(ignore)
        self.dates = Dates(dates or {}, time, date_order)
        self.categories = frozenset(categories)

    def noted(self) -> dict[str, Any]:
        """Return the reading options that a model file records, as `varifold run` does."""
        dates = {name: list(parts) for name, parts in self.dates.parts.items()}
        options: dict[str, Any] = {"target": self.target, "id": self.id, "time": self.time}
        options |= {"ignore": sorted(self.ignore), "dates": dates, "date_order": self.dates.order}
        return {name: value for name, value in options.items() if value}

    def row(self, values: dict[str, Any]) -> dict[str, Any]:
        """Make a row of a line: label and id are removed from the features, the key remains."""
        x = dict(values)
        y = self._label(x.pop(self.target, None))
        more = self._id(x)
        x = self._features(x)
        if y is not None and more and x.keys() <= {self.key}:
            key = None if self.key is None else x.get(self.key)
            return {"y": y, **more, **({} if key is None else {"key": key})}
        if self.key is not None and x.get(self.key) is None:
            raise DataError(f"no key in field {self.key!r}, and there is one learner per key{nearest(self.key, x)}")
        if y is None:
            return {"x": x, **more, **({"keep": True} if more else {})}
        return {"x": x, "y": y, "predict": True, **more}

    def _label(self, value: Any) -> Any:
        """Return the label, None if it is unknown; a quoted number is a number."""
        y = _plain(self.target, value)
        if isinstance(y, float) and math.isinf(y):
            raise DataError(f"the target {self.target!r} is {y}; leave it out until it is known")
        if not isinstance(y, str):
            return y
        try:
            return label_of(y.encode())
        except UnicodeEncodeError:
            raise DataError(f"the label {y!r} is not valid Unicode") from None

    def names(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that the output for a line repeats: the id and the key, unchanged."""
        names = {name: values.get(field) for name, field in (("id", self.id), ("key", self.key)) if field is not None}
        return {name: str(v) if _is_huge(v) else v for name, v in names.items() if not is_missing(v)}

    def _id(self, x: dict[str, Any]) -> dict[str, Any]:
        """Remove the id from the features; return it as a field of a row, empty without one."""
        given = x.pop(self.id, None) if self.id is not None else None
        if is_missing(given):
            return {}
        if type(given) is not int and not (isinstance(given, str) and 0 < len(given) <= _LONGEST_ID):
            raise DataError(
                f"the id in field {self.id!r} is {str(given)[:60]!r}; give a string of 1 to {_LONGEST_ID} characters "
                "or a whole number"
            )
        return {"id": _id_text(given) if isinstance(given, str) or _is_huge(given) else given}

    def _features(self, x: dict[str, Any]) -> dict[str, Any]:
        """Return the features, without ignored columns and the time; dates are replaced by their parts."""
        at = x.get(self.time) if self.time is not None else None
        features: dict[str, Any] = {}
        for name, value in x.items():
            if name in self.ignore or (name == self.time and name not in self.dates):
                continue
            if name in self.dates:
                features.update(self._parts(name, value, at))
                continue
            if isinstance(value, str) and name not in self.categories and looks_like_time(value):
                reject_dates(name, [value])
            features[name] = _plain(name, value)
        return features

    def _parts(self, name: str, value: Any, at: Any) -> dict[str, float | str]:
        if is_missing(value) or value in ABSENT:
            return {}
        try:
            return self.dates.features(name, value, at)
        except DataError as error:
            raise DataError(f"column {name!r}: {error}") from error


def _id_text(given: str | int) -> str:
    """Return an id as text. The server treats 1 and "1" as one id, so text that reads as a number keeps its quotes."""
    text = str(given)
    mistaken = isinstance(given, str) and (text.startswith('"') or text.removeprefix("-").isdecimal())
    return write_json(text).decode() if mistaken else text


def _is_huge(value: Any) -> bool:
    """Return whether a value is an integer of more than 64 bits, which orjson cannot write."""
    return type(value) is int and not -_LARGEST_INT <= value < _LARGEST_INT


def _plain(name: str, value: Any) -> Any:
    """Convert a value for storage: what `run` reads as absent becomes None, an integer beyond 64 bits a float."""
    if isinstance(value, list):
        raise DataError(f"column {name!r} holds a list; a value is a number, a string or null")
    if is_missing(value) or (isinstance(value, str) and value in ABSENT):
        return None
    if _is_huge(value):
        try:
            return float(value)
        except OverflowError as error:
            raise DataError(f"column {name!r} holds a number of {len(str(value))} digits, too large") from error
    return value
