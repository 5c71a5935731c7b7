"""Parse points in time: ISO 8601 text, Python's and pandas' types, seconds since 1970."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from varifold._engine.names.vocabulary import is_missing
from varifold.errors import DataError

__all__ = ["EXAMPLES", "ORDERS", "dates_among", "in_order", "looks_like_time", "parse_time", "shown_time"]

ORDERS = ("dmy", "mdy")
"""Possible orders of day, month and year in a date such as 03/04/2026."""

EXAMPLES = "ISO 8601 such as 2026-03-04 or 2026-03-04T12:30:00, or seconds or milliseconds since 1970"
_ISO = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}(:?\d{2}(:?\d{2}([.,]\d+)?)?)?\s*(Z|[-+]\d{2}(:?\d{2})?)?)?)?")
_TIME = r"(?:[T ]+(\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?))?"
_YEAR_FIRST = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([/.])(\d{1,2})\2(\d{4})" + _TIME)
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""(Smallest number, units per second): nanoseconds, microseconds, milliseconds, seconds (from 1973 on)."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def looks_like_time(text: str) -> bool:
    """Return whether a text is a date, or a date and a time: 2026-03-04, 2026/03/04, 4.3.2026 or 04/03/2026."""
    return any(form.fullmatch(text.strip()) for form in (_ISO, _YEAR_FIRST, _YEAR_LAST))


def dates_among(cells: Sequence[str]) -> list[str]:
    """Return the dates among cells if at least nine in ten are dates; the search stops when more than a tenth are not.

    Otherwise return none.
    """
    dates, others = [], 0
    for cell in cells:
        if looks_like_time(cell):
            dates.append(cell)
            continue
        others += 1
        if 10 * others > len(cells):
            return []
    return dates


def parse_time(value: Any) -> datetime:
    """Convert a value to a point in time; raise a DataError that names the value if it is not one."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()  # an int beyond the year 9999
        if isinstance(value, datetime):
            return value
        raise DataError(f"a date is missing, or not within the years 1 to 9999; write {EXAMPLES}")
    found = _from_text(value.strip()) if isinstance(value, str) else None
    if found is None:
        found = _from_number(value)
    if found is None:
        raise DataError(f"{value!r} is not a point in time; write {EXAMPLES}")
    return found


def shown_time(value: Any) -> str:
    """Return a time as text to show: seconds or milliseconds since 1970 as a date in UTC, others as they are."""
    if is_missing(value):
        return ""
    found = _from_number(value)
    return str(value) if found is None else f"{found:%Y-%m-%d %H:%M:%S}"


def _from_text(text: str) -> datetime | None:
    if re.fullmatch(r"\d{4}-\d{2}", text):
        text += "-01"
    text = _as_iso(text).replace(",", ".")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def in_order(value: Any, order: str | None) -> Any:
    """Convert a date with slashes, such as 03/04/2026, to ISO 8601 text; return anything else as it is."""
    found = _YEAR_LAST.fullmatch(value.strip()) if order is not None and isinstance(value, str) else None
    if found is None or found[2] == ".":
        return value
    first, _, second, year, clock = found.groups()
    return _written(year, *((second, first) if order == "dmy" else (first, second)), clock)


def _as_iso(text: str) -> str:
    """Convert a date with slashes or dots to ISO 8601; raise a DataError if day and month cannot be distinguished."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day, clock = found.groups()
    elif found := _YEAR_LAST.fullmatch(text):
        day, mark, month, year, clock = found.groups()
        if mark == "/" and int(month) > 12:
            day, month = month, day
        elif mark == "/" and int(day) <= 12 and int(day) != int(month):
            raise DataError(
                f"{text!r} may be day {int(day)} of month {int(month)}, or day {int(month)} of month {int(day)}; state "
                "which, date_order='dmy' or 'mdy' (--date-order dmy), or write dates as 2026-03-04"
            )
    else:
        return text
    return _written(year, month, day, clock)


def _written(year: str, month: str, day: str, clock: str | None) -> str:
    hour, minutes = (clock or "0:00").split(":", 1)
    return f"{year}-{int(month):02}-{int(day):02}T{int(hour):02}:{minutes}"


def _from_number(value: Any) -> datetime | None:
    """Convert seconds, milliseconds, microseconds or nanoseconds since 1970, by the size of the number."""
    if isinstance(value, bool) or not isinstance(value, str | numbers.Real):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    unit = next((unit for low, unit in _UNITS if low <= abs(number) < math.inf), None)
    if unit is None:
        return None
    try:
        return _EPOCH + timedelta(seconds=number / unit)
    except OverflowError:
        return None
