"""What the default learner says of itself: who carries weight, which features matter, what changed recently."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.base.traits import Feature

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
class AutoReport:
    """A learner's own account of the stream so far; ``str()`` of it is the account in words."""

    steps: int
    experts: dict[str, float]
    """Weight by expert now."""
    history_steps: np.ndarray[Any, Any]
    history_weights: np.ndarray[Any, Any]
    """Weight by expert (columns in the order of `experts`) at these steps."""
    features: dict[str | int, float]
    """The features that matter most, by weight."""
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    recent: dict[str, float]
    """Error and log loss over about the last 50 and the last 1,000 instances."""
    drifts: tuple[Drift, ...] = ()
    """Changes noticed and experts replaced, in the order of their steps: the latest 32 of each kind and expert."""

    def __str__(self) -> str:
        lines = [
            f"{self.steps:,} instances learned; recent error {self.recent['error']:.1%}, "
            f"over the last thousand {self.recent['error_long']:.1%}."
        ]
        leading = sorted(self.experts.items(), key=lambda item: -item[1])
        lines.append("Weight now: " + ", ".join(f"{name} {weight:.0%}" for name, weight in leading) + ".")
        if self.features:
            lines.append("Heaviest features: " + ", ".join(str(name) for name in self.features) + ".")
        lines.extend(str(drift) for drift in self.drifts[-_SHOWN:])
        lines.extend(self.changes or ("Nothing changed recently.",))
        lines.extend(f"Note: {note}." for note in self.notes)
        return "\n".join(lines)


def drifts(alarms: list[dict[str, Any]], changes: Mapping[str, list[dict[str, Any]]]) -> tuple[Drift, ...]:
    """Records of the model, in the order of their steps."""
    found = [Drift("error rose", "", a["step"], a["since"], a["before"], a["error"], None) for a in alarms]
    for expert, records in changes.items():
        for r in records:
            what = "revived" if r["revived"] else "restarted"
            found.append(Drift(what, expert, r["step"], r["since"], r["before"], r["error"], r["successor"]))
    return tuple(sorted(found, key=lambda drift: drift.step))


def changes(steps: int, features: Mapping[Any, Feature], recent: Mapping[str, float]) -> tuple[str, ...]:
    """Sentences about features that vanished, features that are new and already matter, and a rise of the error."""
    found: list[str] = []
    gone = [
        name
        for name, f in features.items()
        if f.count >= 20 and steps - f.last_seen > max(50.0, 10.0 * (f.last_seen - f.first_seen) / (f.count - 1))
    ]
    if gone:
        found.append(f"Vanished: {_some(gone)} ({_times(features[gone[0]].last_seen)} the last time).")
    recently = max(1, steps - max(100, steps // 5))
    heavy = float(np.quantile([f.weight for f in features.values()], 0.5)) if features else 0.0
    new = [
        name
        for name, f in features.items()
        if f.first_seen > recently and f.first_seen > 1 and f.count >= 10 and f.weight >= heavy > 0.0
    ]
    if new:
        found.append(f"New and already important: {_some(new)} (since step {features[new[0]].first_seen:,}).")
    error, usual = recent["error"], recent["error_long"]
    if steps > 200 and error > usual + 3.0 * math.sqrt(max(usual * (1.0 - usual), 0.01) / 50.0):
        found.append(f"The error rose: {error:.1%} recently against {usual:.1%} before; the stream may have drifted.")
    return tuple(found)


def _some(names: list[Any], most: int = 5) -> str:
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _times(step: int) -> str:
    return f"seen at step {step:,}"
