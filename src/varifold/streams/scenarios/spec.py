"""Scenarios as text: ``name[:value,key=value,...]``, several joined with ``+``."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from varifold.base.nearest import nearest
from varifold.base.plugins import entry_points_of, from_entry_point, from_path
from varifold.base.spec import split_name, split_pairs
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["GROUP", "Scenario", "Step", "find", "parse"]


@dataclass(frozen=True)
class Scenario:
    """A way to make a fixed data set vary; `before` ones work on the rows in file order.

    `needs` is what it must know of the stream in advance: ``rows`` nothing, ``extent`` the number of rows and all
    columns, ``values`` all of the data; ``mode`` is ``rows`` for mode=bernoulli and ``extent`` otherwise. One that
    `keeps_cells` chooses rows, or holds labels back, and leaves the cells of each row as they are.
    """

    name: str
    apply: Callable[..., Any]
    before: bool = False
    needs: str = "extent"
    keeps_cells: bool = False

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Return its parameters, in the order of values without a name."""
        return dict(list(inspect.signature(self.apply, eval_str=True).parameters.items())[1:])

    @property
    def summary(self) -> str:
        """Return the first line of its description."""
        return (inspect.getdoc(self.apply) or "").split("\n", 1)[0]


@dataclass(frozen=True)
class Step:
    """One scenario with its parameters."""

    scenario: Scenario
    parameters: dict[str, Any]

    @property
    def needs(self) -> str:
        """Return what must be known of the stream in advance: rows, extent or values."""
        if self.scenario.needs != "mode":
            return self.scenario.needs
        return "rows" if self.parameters.get("mode", "bernoulli") == "bernoulli" else "extent"


def parse(spec: str, known: Mapping[str, Scenario]) -> list[Step]:
    """Parse a specification such as ``mixed+capricious:mode=pairs`` into steps."""
    if not isinstance(spec, str):
        raise ParameterError(f"a scenario is a string such as 'vfs:0.5'. Got {spec!r} instead.")
    return [_step(part.strip(), spec, known) for part in spec.split("+")]


GROUP = "varifold.scenarios"
"""Entry points of this group, ``name = "package.module:function"``, are scenarios of third parties."""


def find(name: str, known: Mapping[str, Scenario]) -> Scenario:
    """Return the scenario of a name, an entry point or a path ``package.module:function``."""
    if name in known:
        return known[name]
    if name in entry_points_of(GROUP):
        return _own(name, from_entry_point(GROUP, name))
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", name):
        return _own(name, from_path(name, "scenario"))
    raise UnknownNameError(
        f"there is no scenario {name!r}{nearest(name, known)} (`varifold scenarios` lists all; your own function is "
        "written package.module:function)"
    )


def _own(name: str, function: Any) -> Scenario:
    """Make a scenario of a user's function; it sees all rows at once, in their final order."""
    if not callable(function) or isinstance(function, type):
        raise ParameterError(f"the scenario {name!r} is not a function that accepts a Segment and returns one")

    @functools.wraps(function)
    def apply(segment: Any, **parameters: Any) -> Any:
        found = function(segment.reordered(), **parameters)
        if type(found) is not type(segment):
            raise ParameterError(
                f"the scenario {name!r} returned a {type(found).__name__}; return segment.with_block(block)"
            )
        return found

    return Scenario(name, apply, needs="values")


def _step(part: str, spec: str, known: Mapping[str, Scenario]) -> Step:
    name, rest = split_name(part)
    if name not in known and name not in entry_points_of(GROUP):
        attribute, after = split_name(rest)
        name, rest = (f"{name}:{attribute}", after) if attribute.isidentifier() else (name, rest)
    scenario = find(name, known)
    values: dict[str, Any] = {}
    places = list(scenario.parameters)
    for key, value in split_pairs(rest):
        if value is None:
            if not places:
                raise ParameterError(f"{key!r} is one value too many for the scenario {name!r} in {spec!r}")
            key, value = places[0], key
        values[key] = _value(scenario, key, value, spec)
        places = [place for place in places if place not in values]
    for place, parameter in scenario.parameters.items():
        if parameter.default is inspect.Parameter.empty and place not in values:
            raise ParameterError(f"the scenario {name!r} needs {place}: write {name}:{_example(parameter)}")
    return Step(scenario, values)


def _example(parameter: inspect.Parameter) -> str:
    return "0.5" if parameter.annotation is float else "10"


def _value(scenario: Scenario, key: str, text: str, spec: str) -> Any:
    parameter = scenario.parameters.get(key)
    if parameter is None:
        raise ParameterError(
            f"the scenario {scenario.name!r} has no parameter {key!r} (in {spec!r}); "
            f"it has: {', '.join(scenario.parameters) or 'none'}"
        )
    if parameter.annotation is str:
        return text
    try:
        return parameter.annotation(text)
    except ValueError:
        kind = "a whole number" if parameter.annotation is int else "a number"
        raise ParameterError(f"{key} of the scenario {scenario.name!r} must be {kind}. Got {text!r} instead.") from None
