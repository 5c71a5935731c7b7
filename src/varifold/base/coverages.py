"""Parameter `coverages`: how often intervals and label sets should contain the truth."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real as Number
from typing import Any, NamedTuple

from varifold.base.params import Real, text_of
from varifold.errors import ParameterError


class Interval(NamedTuple):
    """Bounds that contain the target with the requested coverage; infinite before any error was measured."""

    low: float
    high: float


class Coverages:
    """Constraint: a tuple or list of distinct numbers in (0, 1); empty for no intervals."""

    def accepts(self, value: object) -> bool:
        """Return whether the value is a sequence of coverages."""
        if not isinstance(value, tuple | list):
            return False
        inside = Real(0, open_low=True)
        return all(inside.accepts(v) and float(v) < 1.0 for v in value) and len({float(v) for v in value}) == len(value)

    def describe(self) -> str:
        """Describe the accepted values."""
        return "a tuple of different floats in (0, 1), such as (0.8, 0.95), or () for none"


def plain_coverages(given: Sequence[Any]) -> tuple[float, ...]:
    """Return accepted coverages as floats, ascending."""
    return tuple(sorted(float(coverage) for coverage in given))


def coverage_key(coverage: float) -> str:
    """Return a coverage as the name of a JSON field."""
    return f"{coverage:.12g}"


def coverage_index(owner: str, coverages: Sequence[float], coverage: float) -> int:
    """Return the index of a coverage; raise ParameterError with a remedy if errors are not measured for it."""
    for place, known in enumerate(coverages):
        if known == coverage:
            return place
    if isinstance(coverage, bool) or not isinstance(coverage, Number) or not 0 < coverage < 1:
        raise ParameterError(f"a coverage lies above 0 and below 1, such as 0.9. Got {text_of(coverage)} instead.")
    if not coverages:
        raise ParameterError(
            f"this {owner} gives no intervals or sets: it was made with coverages=(). Make it with "
            f"coverages=({coverage!r},) before it learns"
        )
    there = ", ".join(map(repr, coverages))
    raise ParameterError(
        f"this {owner} has no coverage {coverage!r}, only {there}: errors are measured while it learns. Choose one of "
        f"these, or make it with coverages=({there}, {coverage!r})"
    )
