"""How often intervals and sets shall hold the truth: the parameter `coverages`, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real as Number
from typing import Any, NamedTuple

from varifold.base.params import Real
from varifold.errors import ParameterError


class Interval(NamedTuple):
    """Where a target lies with the coverage asked for; infinite before any error was measured."""

    low: float
    high: float


class Coverages:
    """Constraint: different numbers in (0, 1), as a tuple or list; none for no intervals."""

    def accepts(self, value: object) -> bool:
        """Whether the value is a sequence of coverages."""
        if not isinstance(value, tuple | list):
            return False
        inside = Real(0, open_low=True)
        return all(inside.accepts(v) and float(v) < 1.0 for v in value) and len({float(v) for v in value}) == len(value)

    def describe(self) -> str:
        """The accepted values in words."""
        return "a tuple of different floats in (0, 1), such as (0.8, 0.95), or () for none"


def plain_coverages(given: Sequence[Any]) -> tuple[float, ...]:
    """Accepted coverages as floats, ascending."""
    return tuple(sorted(float(coverage) for coverage in given))


def coverage_key(coverage: float) -> str:
    """A coverage as the name of a field of JSON."""
    return f"{coverage:.12g}"


def coverage_index(owner: str, coverages: Sequence[float], coverage: float) -> int:
    """The place of a coverage; ParameterError, which says what to do, when errors are not measured for it."""
    for place, known in enumerate(coverages):
        if known == coverage:
            return place
    if isinstance(coverage, bool) or not isinstance(coverage, Number) or not 0.0 < float(coverage) < 1.0:
        raise ParameterError(f"a coverage lies above 0 and below 1, such as 0.9. Got {coverage!r} instead.")
    if not coverages:
        raise ParameterError(
            f"this {owner} gives no intervals or sets: it was made with coverages=(). Make it with "
            f"coverages=({coverage!r},) before it learns"
        )
    there = ", ".join(map(repr, coverages))
    raise ParameterError(
        f"this {owner} has no coverage {coverage!r}, only {there}: errors are measured while it learns. Ask for one of "
        f"these, or make it with coverages=({there}, {coverage!r})"
    )
