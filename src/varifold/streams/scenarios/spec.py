"""Scenarios as text: ``name[:value,key=value,...]``, several joined with ``+``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from varifold.base.nearest import nearest
from varifold.base.spec import split_name, split_pairs
from varifold.errors import ParameterError, UnknownNameError

__all__ = ["Scenario", "Step", "parse"]


@dataclass(frozen=True)
class Scenario:
    """A way in which a fixed data set is made to vary; `before` ones work on the rows in file order.

    `needs` is what it must know of the stream in advance: ``rows`` nothing, ``extent`` the number of rows and all
    columns, ``values`` all of the data; ``mode`` is ``rows`` for mode=bernoulli and ``extent`` otherwise.
    """

    name: str
    apply: Callable[..., Any]
    before: bool = False
    needs: str = "extent"

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Its parameters, in the order in which values without a name are taken."""
        return dict(list(inspect.signature(self.apply, eval_str=True).parameters.items())[1:])

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (inspect.getdoc(self.apply) or "").split("\n", 1)[0]


@dataclass(frozen=True)
class Step:
    """One scenario with the parameters it was given."""

    scenario: Scenario
    parameters: dict[str, Any]

    @property
    def needs(self) -> str:
        """What must be known of the stream in advance: rows, extent or values."""
        if self.scenario.needs != "mode":
            return self.scenario.needs
        return "rows" if self.parameters.get("mode", "bernoulli") == "bernoulli" else "extent"


def parse(spec: str, known: Mapping[str, Scenario]) -> list[Step]:
    """The steps of a specification such as ``mixed+capricious:mode=pairs``."""
    if not isinstance(spec, str):
        raise ParameterError(f"a scenario is a string such as 'vfs:0.5'. Got {spec!r} instead.")
    return [_step(part.strip(), spec, known) for part in spec.split("+")]


def _step(part: str, spec: str, known: Mapping[str, Scenario]) -> Step:
    name, rest = split_name(part)
    if name not in known:
        raise UnknownNameError(
            f"no scenario {name!r} in {spec!r}{nearest(name, known)} Known: {', '.join(sorted(known))}"
        )
    scenario = known[name]
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
