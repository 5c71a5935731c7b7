"""Points in time as data has them: ISO 8601 text, Python's and pandas' types, seconds since 1970."""

from __future__ import annotations

import math
import numbers
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np

from varifold.errors import DataError

__all__ = ["EXAMPLES", "is_time", "looks_like_time", "parse_time"]

EXAMPLES = "ISO 8601 such as 2026-03-04 or 2026-03-04T12:30:00, or seconds or milliseconds since 1970"
_ISO = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}(:?\d{2}(:?\d{2}([.,]\d+)?)?)?\s*(Z|[-+]\d{2}(:?\d{2})?)?)?)?")
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""(From this number on, parts of a second): nanoseconds, microseconds, milliseconds, seconds (from 1973 on)."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(value: object) -> bool:
    """Whether a value is of a type that means a date or a point in time."""
    return isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64)


def looks_like_time(text: str) -> bool:
    """Whether a text is written as a date, or a date and a time, of ISO 8601."""
    return _ISO.fullmatch(text.strip()) is not None


def parse_time(value: Any) -> datetime:
    """A value as a point in time; DataError, which names the value, for what is none."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, np.datetime64):
        return parse_time(value.astype("datetime64[us]").item())
    found = _from_text(value.strip()) if isinstance(value, str) else None
    if found is None:
        found = _from_number(value)
    if found is None:
        raise DataError(f"{value!r} is no point in time; write {EXAMPLES}")
    return found


def _from_text(text: str) -> datetime | None:
    if re.fullmatch(r"\d{4}-\d{2}", text):
        text += "-01"
    try:
        return datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None


def _from_number(value: Any) -> datetime | None:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, by the size of the number."""
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    unit = next((unit for low, unit in _UNITS if low <= abs(number) < math.inf), None)
    if unit is None:
        return None
    try:
        return _EPOCH + timedelta(seconds=number / unit)
    except OverflowError:
        return None
