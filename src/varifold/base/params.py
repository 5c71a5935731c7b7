"""Constraints of parameters: declared once per parameter, checked everywhere with one message."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from varifold.errors import ParameterError

SMALLEST, LARGEST = 1e-50, 1e50
"""Sizes of parameters other than 0: beyond them, products with weights and values are not finite."""


class Constraint(Protocol):
    """Values that a parameter accepts."""

    def accepts(self, value: object) -> bool:
        """Return whether the value is allowed."""

    def describe(self) -> str:
        """Describe the allowed values, as in 'must be ...'."""


def _written(bound: float) -> str:
    """Write a bound so that it can be typed: whole ones with all of their digits."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _bounds(low: float | None, high: float | None, open_low: bool) -> str:
    parts = []
    if low is not None:
        parts.append(f"{'>' if open_low else '>='} {_written(low)}")
    if high is not None:
        parts.append(f"<= {_written(high)}")
    return " and ".join(parts)


def _extreme(v: float) -> bool:
    """Return whether the size of a number is beyond those of parameters; NaN is."""
    return v != 0.0 and not SMALLEST <= abs(v) <= LARGEST


@dataclass(frozen=True)
class Real:
    """A number in an interval, closed above; closed below unless `open_low`.

    Its size is 0 or from SMALLEST to LARGEST, unless the interval begins above 0.
    """

    low: float | None = None
    high: float | None = None
    open_low: bool = False

    def accepts(self, value: object) -> bool:
        """Return whether the value is a number in the interval."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            return False
        try:
            v = float(value)
        except OverflowError:
            return False
        if (not self.low and _extreme(v)) or (self.high is not None and v > self.high):
            return False
        return self.low is None or (v > self.low if self.open_low else v >= self.low)

    def describe(self) -> str:
        """Describe the interval."""
        return f"a float {_bounds(self.low, self.high, self.open_low)}".strip()


@dataclass(frozen=True)
class Integer:
    """An int in a closed interval."""

    low: int | None = None
    high: int | None = None

    def accepts(self, value: object) -> bool:
        """Return whether the value is an int in the interval."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
            return False
        if not -(2**63) <= int(value) < 2**63:  # compiled code counts in 64 bits
            return False
        return (self.low is None or int(value) >= self.low) and (self.high is None or int(value) <= self.high)

    def describe(self) -> str:
        """Describe the interval."""
        return f"an int {_bounds(self.low, self.high, False)}".strip()


@dataclass(frozen=True)
class Boolean:
    """True or False."""

    def accepts(self, value: object) -> bool:
        """Return whether the value is a bool."""
        return isinstance(value, bool | np.bool_)

    def describe(self) -> str:
        """Describe the two values."""
        return "a bool"


class OneOf:
    """One of a few strings."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def accepts(self, value: object) -> bool:
        """Return whether the value is among the choices."""
        return isinstance(value, str) and value in self.choices

    def describe(self) -> str:
        """List the choices."""
        return "one of " + ", ".join(repr(c) for c in self.choices)


class AnyOf:
    """A value that any of several constraints accepts; None means the value None."""

    def __init__(self, *options: Constraint | None) -> None:
        self.options = options

    def accepts(self, value: object) -> bool:
        """Return whether one of the options accepts the value."""
        return any(value is None if o is None else o.accepts(value) for o in self.options)

    def describe(self) -> str:
        """Describe the options, joined by 'or'."""
        return " or ".join("None" if o is None else o.describe() for o in self.options)


def validate(owner: str, constraints: Mapping[str, Constraint], values: Mapping[str, Any]) -> None:
    """Raise ParameterError for the first value that its constraint rejects."""
    for name, constraint in constraints.items():
        if name in values and not constraint.accepts(values[name]):
            raise ParameterError(
                f"The {name!r} parameter of {owner} must be {constraint.describe()}. "
                f"Got {text_of(values[name])} instead.{_about_sizes(values[name])}"
            )


def validate_fields(owner: object, constraints: Mapping[str, Constraint]) -> None:
    """Check the parameters of an object, which are its attributes; a text of a subclass of str becomes a plain str.

    Such are NumPy's strings, as a search over an array of choices passes them; compiled code accepts a plain str only.
    """
    values = vars(owner)
    validate(type(owner).__name__, constraints, values)
    for name in constraints.keys() & values.keys():
        if isinstance(values[name], str):
            values[name] = str.__str__(values[name])


def text_of(value: object) -> str:
    """Return the text of a value for a message; Python writes no int of more than 4,300 digits."""
    try:
        return repr(value)
    except ValueError:
        return f"a number of thousands of digits ({type(value).__name__})"


def _about_sizes(value: object) -> str:
    """Describe the sizes of parameters, if a number has another one."""
    if not isinstance(value, float) or not math.isfinite(value) or not _extreme(value):
        return ""
    return f" Numbers other than 0 are from {SMALLEST:g} to {LARGEST:g} in size."
