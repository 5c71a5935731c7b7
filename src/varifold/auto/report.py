"""What the default learner says of itself: who carries weight, which features matter, what changed recently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varifold.base.blocks import Block
from varifold.base.traits import Feature

_MOST = 100
"""Records of one kind that a report holds, the latest."""
_WORDS = {
    "vanished": ("Vanished", "seen last at step {:,}"),
    "new": ("New and already important", "since step {:,}"),
    "new unit": ("Values in another unit or of another size", "noticed at step {:,}; their scale began again"),
}


@dataclass(frozen=True)
class Change:
    """Something that changed in the stream."""

    what: str
    """``"vanished"``, ``"new"`` (a feature that already matters), ``"new unit"`` (a feature whose values jumped and
    stayed, noticed with ``scale="robust"``), ``"error rose"``.
    """
    feature: str | int | None
    """The feature; None for ``"error rose"``."""
    step: int
    """When it was seen last, was seen first, was noticed."""
    detail: str = ""

    def __str__(self) -> str:
        return _in_words([self])


def _in_words(group: list[Change]) -> str:
    """One sentence about changes of one kind."""
    first = group[0]
    if first.what not in _WORDS:
        return first.detail
    title, when = _WORDS[first.what]
    return f"{title}: {_some([change.feature for change in group])} ({when.format(first.step)})."


_SHOWN = 5
"""Drifts that are put into words, the latest."""


@dataclass(frozen=True)
class Drift:
    """A change of the stream that the learner noticed, or that made it replace one of its experts."""

    what: str
    """``"error rose"``, of the answers given; ``"restarted"``, an expert was replaced by a copy that began when its
    errors rose; ``"revived"``, it was replaced by a copy of an earlier time.
    """
    expert: str
    """Name of the expert; empty for ``"error rose"``."""
    step: int
    """When it was noticed, or the expert replaced."""
    since: int
    """When it began, as far as the detector can tell."""
    before: float
    """Error before."""
    error: float
    """Error since then."""
    successor: float | None
    """Error since then of the copy that took over, if there is one."""

    def __str__(self) -> str:
        if self.successor is None:
            return f"The error rose from {self.before:.1%} to {self.error:.1%} at step {self.since:,}."
        return (
            f"Expert {self.what} at step {self.step:,}: {self.expert} (wrong in {self.error:.0%} since step "
            f"{self.since:,}, {self.before:.0%} before, its successor in {self.successor:.0%})."
        )


@dataclass(frozen=True)
class ExpertState:
    """What one expert sees, and whether it takes part."""

    weight: float
    """Weight now; 0 while it stands aside."""
    sees: str
    """``"everything"``: all features present; ``"columns"``: which columns are present, no values; ``"bounded"``: of
    string columns with many levels the frequent ones and one number for the others.
    """
    limit: int | None
    """Columns beyond which it stands aside for good; None for no limit."""
    status: str
    """``"active"``, ``"paused"`` (asked and taught in one round of eight), ``"aside"`` (takes no part)."""
    reason: str
    """Why it is paused or stands aside; empty while it is active."""
    notes: tuple[str, ...]
    """What its own limits leave out."""


@dataclass(frozen=True)
class AutoReport:
    """A learner's own account of the stream so far; ``str()`` of it is the account in words."""

    steps: int
    experts: dict[str, float]
    """Weight by expert now; 0 for one that stands aside."""
    history_steps: np.ndarray[Any, Any]
    history_weights: np.ndarray[Any, Any]
    """Weight by expert (columns in the order of `experts`) at these steps."""
    features: dict[str | int, float]
    """The features that matter most, by weight."""
    changes: tuple[Change, ...]
    """What changed, by kind and the latest first."""
    notes: tuple[str, ...]
    recent: dict[str, float]
    """Error and log loss over about the last 50 and the last 1,000 instances."""
    drifts: tuple[Drift, ...] = ()
    """Changes noticed and experts replaced, in the order of their steps: the latest 32 of each kind and expert."""
    states: dict[str, ExpertState] = field(default_factory=dict)
    """By expert: what it sees and whether it takes part; empty for regressors."""
    wide_columns: tuple[str | int, ...] = ()
    """String columns with many levels, of which some experts see the frequent ones only."""

    def __str__(self) -> str:
        lines = [f"{self.steps:,} instances learned; {self._errors()}."]
        leading = sorted(self.experts.items(), key=lambda item: -item[1])
        lines.append("Weight now: " + ", ".join(f"{name} {weight:.0%}" for name, weight in leading if weight) + ".")
        if self.features:
            lines.append("Heaviest features: " + ", ".join(str(name) for name in self.features) + ".")
        lines.extend(str(drift) for drift in self.drifts[-_SHOWN:])
        kinds = dict.fromkeys(change.what for change in self.changes)
        lines.extend(_in_words([c for c in self.changes if c.what == what]) for what in kinds)
        if not kinds:
            lines.append("Nothing changed recently.")
        if self.wide_columns:
            lines.append(f"Columns with many levels: {_some(list(self.wide_columns))}.")
        lines.extend(f"Note: {note}." for note in self.notes)
        return "\n".join(lines)

    def _errors(self) -> str:
        return f"recent error {self.recent['error']:.1%}, over the last thousand {self.recent['error_long']:.1%}"


@dataclass(frozen=True)
class RegressionReport(AutoReport):
    """A regressor's own account; `recent` is empty."""

    typical_error: float = math.nan
    """Mean absolute error of about the last 200 answers, in the target's units; NaN before the first."""

    def _errors(self) -> str:
        if math.isnan(self.typical_error):
            return "no error was measured yet"
        return f"typical error of the last 200 answers {self.typical_error:.4g}"


def drifts(alarms: list[dict[str, Any]], changes: Mapping[str, list[dict[str, Any]]]) -> tuple[Drift, ...]:
    """Records of the model, in the order of their steps."""
    found = [Drift("error rose", "", a["step"], a["since"], a["before"], a["error"], None) for a in alarms]
    for expert, records in changes.items():
        for r in records:
            what = "revived" if r["revived"] else "restarted"
            found.append(Drift(what, expert, r["step"], r["since"], r["before"], r["error"], r["successor"]))
    return tuple(sorted(found, key=lambda drift: drift.step))


def changes(
    steps: int,
    features: Mapping[Any, Feature],
    risen: str,
    units: Mapping[Any, int],
    predicted: Block | None = None,
) -> tuple[Change, ...]:
    """Features that vanished, are new and matter, or changed their unit (at these steps), and that the error rose.

    Instances that were predicted and not learned count as steps for features that none of them has.
    """
    later = 0 if predicted is None else len(predicted)
    here = set() if predicted is None else _names_in(predicted)
    found = {
        "vanished": {
            name: f.last_seen for name, f in features.items() if name not in here and _is_gone(f, steps + later)
        },
        "new": _new_and_heavy(steps, features),
        "new unit": units,
    }
    records = [
        Change(what, name, step)
        for what, at in found.items()
        for name, step in sorted(at.items(), key=lambda item: -item[1])[:_MOST]
    ]
    if risen:
        records.append(Change("error rose", None, steps, risen))
    return tuple(records)


_RECENT = 50
"""Answers over which a recent error is averaged."""
_FIRST = 200
"""Answers before which no error is said to have risen."""


def risen_share(answers: int, error: float, usual: float) -> str:
    """That the share of wrong answers rose, by more than three standard errors; empty if it did not."""
    if answers <= _FIRST or error <= usual + 3.0 * math.sqrt(max(usual * (1.0 - usual), 0.01) / _RECENT):
        return ""
    return f"The error rose: {error:.1%} recently against {usual:.1%} before; the stream may have drifted."


def risen_number(answers: int, error: float, usual: float, deviation: float) -> str:
    """That the mean error rose, by more than three standard errors and a fifth; empty if it did not."""
    if answers <= _FIRST or error <= max(1.2 * usual, usual + 3.0 * deviation / math.sqrt(_RECENT)):
        return ""
    return f"The error rose: {error:.4g} recently against {usual:.4g} before; the stream may have drifted."


def _names_in(block: Block) -> set[str | int]:
    """Names of the features that some row of the block has."""
    return {block.vocabulary.name_of(int(i)) for i in np.unique(block.indices)}


def _is_gone(f: Feature, steps: int) -> bool:
    """Whether a feature has been absent for ten times as long as it used to be, and for 50 steps."""
    return f.count >= 20 and steps - f.last_seen > max(50.0, 10.0 * (f.last_seen - f.first_seen) / (f.count - 1))


def _new_and_heavy(steps: int, features: Mapping[Any, Feature]) -> dict[Any, int]:
    """First steps of features that came recently and weigh as much as half of the others."""
    recently = max(1, steps - max(100, steps // 5))
    heavy = float(np.quantile([f.weight for f in features.values()], 0.5)) if features else 0.0
    return {
        name: f.first_seen
        for name, f in features.items()
        if f.first_seen > recently and f.first_seen > 1 and f.count >= 10 and f.weight >= heavy > 0.0
    }


def _some(names: list[Any], most: int = 5) -> str:
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
