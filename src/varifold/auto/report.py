"""Report of a default learner: weights of the experts, influential features, recent changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varifold.base.blocks import Block
from varifold.base.plural import plural
from varifold.base.traits import Feature

_RECENT = 50
"""Number of predictions over which the recent error is averaged."""
_MOST = 100
"""Largest number of changes of one kind in a report; the latest are kept."""
_SHOWN = 5
"""Most drifts in the text, the latest ones, and most names or steps in one of its lists."""
_RISING = (":elapsed", ":year")
"""Ends of the names of features that date parts make and that rise with the stream: a new range is no new unit."""
_WORDS = {
    "vanished": ("Vanished", "last seen at {}"),
    "new": ("New and already important", "since {}"),
    "new unit": ("Values in another unit or of another size", "detected at {}; their scaling was reset"),
}


@dataclass(frozen=True)
class Change:
    """A change in the stream."""

    what: str
    """``"vanished"``, ``"new"`` (a feature that is already influential), ``"new unit"`` (a feature whose values jumped
    and stayed there, detected with ``scale="robust"``; not the time elapsed), ``"error rose"``.
    """
    feature: str | int | None
    """Feature (the column, if it vanished); None for ``"error rose"``."""
    step: int
    """Step at which the feature was last seen, was first seen, or at which the change was detected."""
    detail: str = ""

    def __str__(self) -> str:
        return _describe([self])


def _describe(group: list[Change]) -> str:
    """Describe changes of one kind in a sentence."""
    first = group[0]
    if first.what not in _WORDS:
        return first.detail
    title, when = _WORDS[first.what]
    steps = list(dict.fromkeys(f"{change.step:,}" for change in group[:_SHOWN]))
    at = f"step{'' if len(steps) == 1 else 's'} {', '.join(steps)}"
    return f"{title}: {_join([change.feature for change in group])} ({when.format(at)})."


@dataclass(frozen=True)
class Drift:
    """A rise of the error, or a restart of an expert after one."""

    what: str
    """``"error rose"``: that of the predictions; ``"restarted"``: an expert was replaced by a copy that began when its
    errors rose; ``"revived"``: it was replaced by an earlier copy.
    """
    expert: str
    """Name of the expert; empty for ``"error rose"``."""
    step: int
    """Step at which it was detected, or the expert was replaced."""
    since: int
    """Step at which it began, as estimated by the detector."""
    before: float
    """Error before."""
    error: float
    """Error since then."""
    successor: float | None
    """Error since then of the copy that replaced the expert; None for ``"error rose"``."""

    def __str__(self) -> str:
        if self.successor is None:
            return f"The error rose from {self.before:.1%} to {self.error:.1%} at step {self.since:,}."
        return (
            f"Expert {self.what} at step {self.step:,}: {self.expert} (error {self.error:.0%} since step "
            f"{self.since:,}, {self.before:.0%} before; that of its successor {self.successor:.0%})."
        )


@dataclass(frozen=True)
class ExpertState:
    """Input and status of one expert."""

    weight: float
    """Current weight; 0 while it is disabled."""
    sees: str
    """``"everything"``: all present features; ``"columns"``: which columns are present, no values; ``"bounded"``: of
    string columns with many levels the frequent ones, and one number in place of each other.
    """
    limit: int | None
    """Number of columns beyond which it is disabled; None for no limit."""
    status: str
    """``"active"``, ``"paused"`` (evaluated on every 8th instance) or ``"disabled"``."""
    reason: str
    """Why it is paused or disabled; empty while it is active."""
    notes: tuple[str, ...]
    """Input that the model ignores because of its own limits."""


@dataclass(frozen=True)
class AutoReport:
    """A summary of the stream so far; ``str()`` returns it as text."""

    steps: int
    experts: dict[str, float]
    """Current weight by expert; 0 for a disabled one."""
    history_steps: np.ndarray[Any, Any]
    history_weights: np.ndarray[Any, Any]
    """Weight by expert (columns in the order of `experts`) at these steps."""
    features: dict[str | int, float]
    """Features with the largest weights times the share of instances that have them since they were first seen."""
    changes: tuple[Change, ...]
    """Changes in the stream, by kind, the latest first."""
    notes: tuple[str, ...]
    recent: dict[str, float]
    """Error and log loss over about the last 50 and the last 1,000 instances."""
    drifts: tuple[Drift, ...] = ()
    """Rises of the error and restarts of experts, in order: the latest 32 of each kind and expert."""
    states: dict[str, ExpertState] = field(default_factory=dict)
    """By expert: what it sees and whether it is active; empty for regressors."""
    wide_columns: tuple[str | int, ...] = ()
    """String columns with many levels, of which some experts see only the frequent ones."""

    def __str__(self) -> str:
        lines = [f"{plural(self.steps, 'instance')} learned; {self._errors()}."]
        leading = sorted(self.experts.items(), key=lambda item: -item[1])
        shown = [f"{name} {weight:.0%}" for name, weight in leading if weight >= 0.005]
        small = sum(0 < weight < 0.005 for _, weight in leading)
        if small:
            shown.append(f"{plural(small, 'other')} less than 1% each")
        lines.append("Weight now: " + "; ".join(shown) + ".")
        if self.experts.get("stack"):
            lines.append("(Experts are the learners that are combined; stack is a weighted sum of all of them.)")
        if self.features:
            lines.append("Largest average weights: " + ", ".join(str(name) for name in self.features) + ".")
        lines.extend(str(drift) for drift in self.drifts[-_SHOWN:])
        kinds = dict.fromkeys(change.what for change in self.changes)
        lines.extend(_describe([c for c in self.changes if c.what == what]) for what in kinds)
        if not kinds:
            lines.append("Nothing changed recently.")
        if self.wide_columns:
            lines.append(f"Columns with many levels: {_join(list(self.wide_columns))}.")
        lines.extend(f"Note: {note}." for note in self.notes)
        return "\n".join(lines)

    def _errors(self) -> str:
        if self.steps < 2:
            return "no error measured yet"
        if self.steps <= _RECENT:
            return f"error so far {self.recent['error']:.1%}"
        long = "over the last thousand" if self.steps > 1000 else "so far"
        return f"recent error {self.recent['error']:.1%}, {long} {self.recent['error_long']:.1%}"


@dataclass(frozen=True)
class RegressionReport(AutoReport):
    """A summary by a regressor; `recent` is empty."""

    typical_error: float = math.nan
    """Mean absolute error of about the last 200 predictions, in the target's units; NaN before the first."""

    def _errors(self) -> str:
        if math.isnan(self.typical_error):
            return "no error measured yet"
        when = "of the last 200 predictions" if self.steps > 200 else "so far"
        return f"typical error {when} {self.typical_error:.4g}"


def drifts(rises: list[dict[str, Any]], restarts: Mapping[str, list[dict[str, Any]]]) -> tuple[Drift, ...]:
    """Merge rises of the error and restarts by expert, in the order of their steps."""
    merged = [Drift("error rose", "", r["step"], r["since"], r["before"], r["error"], None) for r in rises]
    for expert, records in restarts.items():
        for r in records:
            what = "revived" if r["revived"] else "restarted"
            merged.append(Drift(what, expert, r["step"], r["since"], r["before"], r["error"], r["successor"]))
    return tuple(sorted(merged, key=lambda drift: drift.step))


def changes(
    steps: int,
    features: Mapping[Any, Feature],
    rise: str,
    units: Mapping[Any, int],
    predicted: Block | None = None,
) -> tuple[Change, ...]:
    """List columns that vanished, new and influential features, changes of unit, and a rise of the error, if any.

    A column of strings vanishes with all its values. `units` holds the steps at which units changed. Instances
    that were predicted but not learned count as steps for columns that none of them has.
    """
    later = 0 if predicted is None else len(predicted)
    present = set() if predicted is None else _columns_in(predicted)
    steps_by_kind = {
        "vanished": {
            name: f.last_seen
            for name, f in columns_of(features).items()
            if name not in present and _is_gone(f, steps + later)
        },
        "new": _new_and_influential(steps, features),
        "new unit": {name: step for name, step in units.items() if not str(name).endswith(_RISING)},
    }
    records = [
        Change(what, name, step)
        for what, at in steps_by_kind.items()
        for name, step in sorted(at.items(), key=lambda item: -item[1])[:_MOST]
    ]
    if rise:
        records.append(Change("error rose", None, steps, rise))
    return tuple(records)


_FIRST = 200
"""Number of predictions before which no rise is reported."""


def error_rise(count: int, error: float, usual: float) -> str:
    """Describe a rise of the error rate by more than three standard errors; empty if there is none."""
    if count <= _FIRST or error <= usual + 3.0 * math.sqrt(max(usual * (1.0 - usual), 0.01) / _RECENT):
        return ""
    return f"The error rose: {error:.1%} recently, {usual:.1%} before; the stream may have drifted."


def mean_error_rise(count: int, error: float, usual: float, deviation: float) -> str:
    """Describe a rise of the mean error by more than three standard errors and a fifth; empty if there is none."""
    if count <= _FIRST or error <= max(1.2 * usual, usual + 3.0 * deviation / math.sqrt(_RECENT)):
        return ""
    return f"The error rose: {error:.4g} recently, {usual:.4g} before; the stream may have drifted."


def _columns_in(block: Block) -> set[str | int]:
    """Return the names of the columns in some row of the block."""
    names = block.vocabulary
    return {names.name_of(names.column_of(int(i))) for i in np.unique(block.indices)}


def columns_of(features: Mapping[Any, Feature]) -> dict[Any, Feature]:
    """Return features by column: the values of a column of strings are one feature."""
    columns: dict[Any, Feature] = {}
    for name, f in features.items():
        column = name if f.column is None else f.column
        other = columns.get(column)
        if other is not None:
            f = Feature(
                min(f.first_seen, other.first_seen),
                max(f.last_seen, other.last_seen),
                f.count + other.count,
                f.weight + other.weight,
            )
        columns[column] = f
    return columns


def appeared(features: Mapping[Any, Feature]) -> dict[Any, int]:
    """Return the first steps of the columns that were added to the stream: absent before for unusually long."""
    return {name: f.first_seen for name, f in columns_of(features).items() if _is_unusual(f, f.first_seen - 1)}


def _is_gone(f: Feature, steps: int) -> bool:
    """Return whether a feature has been absent for unusually long."""
    return _is_unusual(f, steps - f.last_seen)


def _is_unusual(f: Feature, absent: int) -> bool:
    """Return whether a feature is absent for more than 50 steps and ten times its usual interval."""
    return f.count >= 20 and absent > max(50.0, 10.0 * (f.last_seen - f.first_seen) / (f.count - 1))


def _new_and_influential(steps: int, features: Mapping[Any, Feature]) -> dict[Any, int]:
    """Return the first steps of features that are recent and have at least the median weight."""
    recently = max(1, steps - max(100, steps // 5))
    median = float(np.quantile([f.weight for f in features.values()], 0.5)) if features else 0.0
    return {
        name: f.first_seen
        for name, f in features.items()
        if f.first_seen > recently and f.first_seen > 1 and f.count >= 10 and f.weight >= median > 0.0
    }


def _join(names: list[Any]) -> str:
    """Join the first names."""
    shown = ", ".join(str(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
