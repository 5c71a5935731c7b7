"""Scenarios by name: the papers' ways to make a fixed data set vary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from varifold.base.plugins import entry_points_of
from varifold.errors import ParameterError
from varifold.streams.scenarios import evolving, lifetimes, masking, reshaping
from varifold.streams.scenarios.segment import Segment
from varifold.streams.scenarios.spec import GROUP, Scenario, find

__all__ = ["SCENARIOS", "all_scenarios", "scenarios"]


def none(segment: Segment) -> Segment:
    """Keep every feature as it is in the data set."""
    return segment


def delay(segment: Segment, rounds: int) -> Segment:
    """Delay labels by `rounds` instances; the evaluation holds them back."""
    if rounds < 0:
        raise ParameterError(f"the delay must be a whole number >= 0. Got {rounds} instead.")
    return replace(segment, delay=rounds)


def labels(segment: Segment, share: float) -> Segment:
    """Withhold all labels but a share of them, drawn at random; the evaluation still scores every instance."""
    if not 0.0 <= share <= 1.0:
        raise ParameterError(f"the share of labels must be from 0 to 1. Got {share} instead.")
    return replace(segment, label_share=share, label_seed=segment.seed)


def _table() -> dict[str, Scenario]:
    before: list[Callable[..., Segment]] = [reshaping.balanced, reshaping.mixed, reshaping.sample]
    after: list[Callable[..., Segment]] = [
        none,
        masking.vfs,
        masking.trapezoidal,
        masking.capricious,
        masking.informative,
        masking.uninformative,
        evolving.evolvable,
        lifetimes.outage,
        lifetimes.rotating,
        lifetimes.silent,
        lifetimes.bursts,
        reshaping.absences,
        reshaping.stretch,
        delay,
        labels,
    ]
    needs = dict.fromkeys(("none", "delay", "labels", "uninformative"), "rows")
    needs |= {"vfs": "mode", "capricious": "mode"}
    needs |= {"evolvable": "values", "absences": "values", "stretch": "values"}
    found = [Scenario(f.__name__, f, before=True, needs="values") for f in before]
    found += [Scenario(f.__name__, f, needs=needs.get(f.__name__, "extent")) for f in after]
    keep = {"none", "delay", "labels", "balanced", "sample", "stretch"}
    return {scenario.name: replace(scenario, keeps_cells=scenario.name in keep) for scenario in found}


SCENARIOS: dict[str, Scenario] = _table()


def all_scenarios() -> dict[str, Scenario]:
    """Return every scenario by name, including those of installed packages."""
    brought = {name: find(name, SCENARIOS) for name in entry_points_of(GROUP)}
    return dict(sorted((brought | SCENARIOS).items()))


def scenarios() -> dict[str, str]:
    """Describe every scenario by name."""
    return {name: scenario.summary for name, scenario in all_scenarios().items()}
