"""Features of dates: the parts of a point in time that the caller selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from varifold._engine.names.vocabulary import is_missing
from varifold.base.clock import ORDERS, dates_among, in_order, parse_time
from varifold.base.nearest import nearest
from varifold.errors import DataError, ParameterError

__all__ = ["PARTS", "Dates", "date_error", "in_python", "reject_dates"]

_HOUR = re.compile(r"(?:^|[T ])(?!0?0:00(?::00)?(?!:))\d{1,2}:\d{2}")
"""A time that is not midnight."""
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _plain(t: datetime) -> datetime:
    """Remove the time zone; a time with a zone becomes UTC."""
    try:
        return t if t.tzinfo is None else t.astimezone(UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise DataError(f"{t.isoformat()!r} is in UTC not within the years 1 to 9999") from error


PARTS: dict[str, Callable[[datetime], float | str]] = {
    "hour": lambda t: t.hour + t.minute / 60 + t.second / 3600,
    "weekday": lambda t: _WEEKDAYS[t.weekday()],
    "month": lambda t: _MONTHS[t.month - 1],
    "day": lambda t: t.day,
    "year": lambda t: t.year,
    "elapsed": lambda t: (_plain(t) - _EPOCH) / _DAY,
}
"""Features of a date other than `age`: numbers, and categories (weekday and month)."""


class Dates:
    """Parts of dates that become features, by column: ``{"when": ["hour", "weekday"]}``.

    A part is the feature ``column:part``. `hour` is a number from 0 to 24, `weekday` and `month` are categories, `day`
    (of the month), `year` and `elapsed` (days since 1970) are numbers. `age` is the days from the date to the time of
    its row, which the option `time` names. `order` is that of day and month in 03/04/2026: ``dmy`` or ``mdy``.
    """

    def __init__(self, given: Mapping[str, Sequence[str]], time: str | None, order: str | None = None) -> None:
        self.time = time
        self.order = order
        if order not in (None, *ORDERS):
            raise ParameterError(f"date_order must be one of {', '.join(ORDERS)}. Got {order!r} instead.")
        if not isinstance(given, Mapping):
            raise ParameterError(f"dates must be a dict of column name -> list of parts. Got {given!r} instead.")
        self.parts = {column: self._checked(column, parts) for column, parts in given.items()}

    def _checked(self, column: str, parts: Any) -> tuple[str, ...]:
        known = [*PARTS, "age"]
        if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
            raise ParameterError(f"dates of column {column!r} must be a list of {', '.join(known)}. Got {parts!r}.")
        for part in parts:
            if part not in known:
                raise ParameterError(
                    f"dates of column {column!r}: there is no part {part!r}{nearest(str(part), known)} (the parts are "
                    f"{', '.join(known)})"
                )
        if "age" in parts and self.time in (None, column):
            raise ParameterError(
                f"the age of column {column!r} is measured at the time of the row: name another column with time "
                "(--time COL)"
            )
        return tuple(parts)

    def __contains__(self, column: object) -> bool:
        return column in self.parts

    def _point(self, value: Any) -> datetime:
        """Convert a date to a point in time; an error names the date as in the file."""
        ordered = in_order(value, self.order)
        try:
            return parse_time(ordered)
        except DataError as error:
            if ordered is value:
                raise
            raise DataError(f"{value!r} is not a date in the order {self.order}") from error

    def features(self, column: str, value: Any, at: Any) -> dict[str, float | str]:
        """Compute the features of one date; `at` is the time of its row."""
        t = self._point(value)
        found: dict[str, float | str] = {}
        for part in self.parts[column]:
            if part != "age":
                found[f"{column}:{part}"] = PARTS[part](t)
            elif not is_missing(at):
                found[f"{column}:age"] = (_plain(self._point(at)) - _plain(t)) / _DAY
        return found


def reject_dates(column: str | int, cells: Sequence[str]) -> None:
    """Raise an error for a column of dates that no option names: each date would be a separate category."""
    if dates := dates_among(cells):
        raise date_error(column, dates)


def in_python(option: str, value: Any) -> str:
    """Write an option as an argument of `read`."""
    return f"{option}={value!r}"


def date_error(
    column: str | int,
    dates: Sequence[object],
    quote: Callable[[str, Any], str] = in_python,
) -> DataError:
    """Make the error about a column of these dates: the first of them and the possible remedies.

    `quote` writes an option and its value.
    """
    first = "hour" if any(_HOUR.search(str(date)) for date in dates) else "month"  # dates alone are at midnight
    return DataError(
        f"column {column!r} holds dates such as {str(dates[0])!r}; say what of them is a feature, "
        f"{quote('dates', {column: [first, 'weekday']})} (--dates {column}={first}+weekday), take it as the time of "
        f"the rows, {quote('time', column)} (--time {column}), leave it out, {quote('ignore', [column])} (--ignore "
        f"{column}), or take every date as a separate category, "
        f"{quote('types', {column: 'category'})} (--types {column}=category)"
    )
