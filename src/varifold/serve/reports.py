"""Reports of models for the dashboard, computed at most once a second."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

from varifold.serve.core.models import Model
from varifold.serve.core.state import ModelState

_LONGEST = 120
"""Most points of an expert's history in a report."""


class Reports:
    """Reports by model, with instances and labels per second since the previous report."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[float, dict[str, Any]]] = {}
        self._counts: dict[str, tuple[float, int, int]] = {}

    def of(self, model: Model) -> dict[str, Any]:
        """Return the report, at most a second old."""
        name, now = model.state.name, time.monotonic()
        made = self._made.get(name)
        if made is not None and now - made[0] < 0.9:
            return made[1]
        report = {**_facts(model), "throughput": self._throughput(model, now)}
        self._made[name] = (now, report)
        return report

    def forget(self, name: str) -> None:
        """Drop what is known about a model that was deleted."""
        self._made.pop(name, None)
        self._counts.pop(name, None)

    def _throughput(self, model: Model, now: float) -> dict[str, float | None]:
        monitor = model.state.monitor
        name = model.state.name
        before = self._counts.get(name)
        self._counts[name] = (now, monitor.instances, monitor.labels)
        if before is None or now - before[0] > 60:
            return {"instances": None, "labels": None}
        seconds = now - before[0]
        return {
            "instances": (monitor.instances - before[1]) / seconds,
            "labels": (monitor.labels - before[2]) / seconds,
        }


def _facts(model: Model) -> dict[str, Any]:
    state = model.state
    monitor = state.monitor
    return {
        "name": state.name,
        "task": state.learner._task,
        "seq": state.seq,
        "steps": state.learner.steps,
        "instances": monitor.instances,
        "labels": monitor.labels,
        "waiting": len(state.waiting),
        "expired": state.waiting.expired,
        "error": {
            "recent": monitor.error.recent,
            "usual": monitor.error.usual,
            "scored": monitor.error.scored,
            "curve": monitor.curve(),
        },
        "label_rate": {"recent": monitor.label_rate, "usual": monitor.usual_label_rate},
        "features": monitor.features(),
        "experts": _experts(state.learner),
        "devices": state.devices.counts() if len(state.devices) else None,
        "ask": None if state.asking is None else asking(state),
        "stopped": model.stopped,
    }


def asking(state: ModelState) -> dict[str, Any]:
    """Return the budget of requested labels, how much of it was used, and the error estimated from those drawn.

    Not every requested label arrives, and people label what is worth most; which of the instances drawn at random get
    a label does not depend on them, so the estimate rests on those alone.
    """
    policy = state.asking
    if policy is None:
        return {}
    estimate = policy.estimate()
    numbers = {name: None if math.isnan(value) else value for name, value in asdict(estimate).items()}
    return {
        "budget": policy.budget,
        "decided": policy.seen,
        "requested": policy.asked,
        "estimate": numbers,
        "text": str(estimate),
    }


def _experts(learner: Any) -> dict[str, Any] | None:
    """Return weights by expert now and over time, changes and drifts; None for a learner without experts."""
    if not hasattr(learner, "report"):
        return None
    report = learner.report()
    every = max(1, -(-len(report.history_steps) // _LONGEST))
    return {
        "now": report.experts,
        "steps": report.history_steps[::every].tolist(),
        "weights": report.history_weights[::every].tolist(),
        "changes": [{**asdict(change), "text": str(change)} for change in report.changes],
        "drifts": [{**asdict(drift), "text": str(drift)} for drift in report.drifts],
    }
