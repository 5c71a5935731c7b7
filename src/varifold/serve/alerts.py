"""Alerts: a feature fell silent, a new one appeared, an anomaly, the error is high, labels stopped arriving.

Alerts are events (and so metrics), and are sent to a webhook or a command if one is given. Events about models that
stop and about brokers that cannot be reached are sent too.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from varifold.base.json_text import write_json
from varifold.base.learner import is_detector, is_regressor
from varifold.serve.core.devices import Transition
from varifold.serve.core.log import warning
from varifold.serve.core.models import Models
from varifold.serve.core.monitor import Monitor
from varifold.serve.core.state import ModelState
from varifold.serve.extra import httpx

_PATIENCE = 10.0
_LAST_SECONDS = 3.0
"""Seconds for which a server whose disk failed waits until that was sent."""
_MOST_NAMES = 8
_MOST_DELIVERIES = 32
_MOST_NEW = 1_000
_NEW_SECONDS = 60.0
"""Seconds between two alerts about new features: in some streams there is a new one in every instance."""
_ALARM_SECONDS = 60.0
"""Seconds for which anomalies after the first are collected into one alert."""
_COLLECT = 8
"""Most seconds for which transitions of devices are collected."""
_COMPARE_EVERY = 5
_MOST_KEYS = 100
_ROUTINE = frozenset({"mqtt", "kafka", "mqtt-rejected", "kafka-rejected"})
"""Kinds of events that are not sent: what is normal, and what a sender may cause for each message."""
_WORDS = {
    "device-silent": "fell silent",
    "device-back": "back",
    "device-error": "the error is far above that of most others",
    "device-error-normal": "the error is normal again",
    "sensor-silent": "fell silent",
    "sensor-back": "back",
}


@dataclass(frozen=True)
class AlertRules:
    """When to raise an alert, and where to send it."""

    error_above: float | None = None
    """Share of wrong predictions of a classifier; a regressor's error has its target's unit: set it in `error_of`. The
    error of a detector, its share of alarms, is bounded there as well."""
    error_of: Mapping[str, float] = field(default_factory=dict)
    """Bounds by model."""
    label_rate_drop: float = 0.2
    """Alert when labels arrive at less than this share of their usual rate."""
    webhook: str | None = None
    command: str | None = None
    """Command that gets the event as JSON on its standard input."""

    def bound(self, model: str, learner: Any) -> float | None:
        """Return the error above which a model raises an alert; None for no bound."""
        shares = not is_regressor(learner) and not is_detector(learner)
        return self.error_of.get(model, self.error_above if shares else None)


class _Known:
    """Events already reported for one model, so that nothing is reported twice."""

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.presence = {} if monitor is None else {name: monitor.presence(name) for name in monitor.names()}
        self.error = False
        self.labels = False
        self.new: list[str] = []
        self.new_at = -math.inf
        self.alarm_at = -math.inf
        self.transitions: list[Transition] = []
        """Transitions of devices that are collected, so that those that belong together make one alert."""
        self.collected = 0
        self.quiet = 0


class Alerts:
    """Checks every model once a second."""

    def __init__(self, models: Models, rules: AlertRules) -> None:
        self.models = models
        self.rules = rules
        self._checks = 0
        self._sent = models.events.before
        self._known = {model.state.name: _Known(model.state.monitor) for model in models}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Check and send once a second until cancelled; deliveries end then, or seconds later if the disk failed."""
        try:
            while True:
                self.check()
                self._send()
                await asyncio.sleep(1.0)
        finally:
            if self.models.stopped is not None:
                self._send()
                if self._deliveries:
                    await asyncio.wait(self._deliveries, timeout=_LAST_SECONDS)
            deliveries = list(self._deliveries)
            for task in deliveries:
                task.cancel()
            await asyncio.gather(*deliveries, return_exceptions=True)

    def check(self) -> None:
        """Compare every model with its state a second ago."""
        present = set()
        for model in self.models:
            state = model.state
            present.add(state.name)
            known = self._known.get(state.name)
            if known is None:
                known = self._known[state.name] = _Known()
            self._check_features(state.name, state.monitor, known)
            self._check_error(state, known)
            self._check_alarms(state, known)
            if state.asking is None:  # requested labels arrive when people have time
                self._check_labels(state.name, state.monitor, known)
            if len(state.devices):
                self._check_devices(state, known)
        self._checks += 1
        for name in self._known.keys() - present:
            del self._known[name]

    def _check_features(self, model: str, monitor: Monitor, known: _Known) -> None:
        now = {name: monitor.presence(name) for name in monitor.names()}
        changed: dict[str, list[str]] = {}
        for name, presence in now.items():
            before = known.presence.get(name)
            if presence == before or (before is None and presence == "here"):
                continue
            kind: str = "back" if presence == "here" and before in ("silent", "gone") else presence
            if kind == "new" or (kind != "here" and monitor.is_regular(name)):
                changed.setdefault(kind, []).append(name)
        known.presence = dict(now)
        known.new += changed.pop("new", [])[: _MOST_NEW - len(known.new)]
        if known.new and time.monotonic() - known.new_at > _NEW_SECONDS:
            changed["new"], known.new, known.new_at = known.new, [], time.monotonic()
        words = {"silent": "fell silent", "new": "new", "gone": "gone for long", "back": "back"}
        for kind, names in changed.items():
            self.models.events.add(model, f"feature-{kind}", f"{_listed(names)}: {words[kind]}", features=names)

    def _check_error(self, state: ModelState, known: _Known) -> None:
        model, error = state.name, state.monitor.error
        what = "the share of alarms" if state.detects else "the error"
        bound = self.rules.bound(model, state.learner)
        if bound is None or error.scored < 50:
            return
        if error.recent > bound and not known.error:
            known.error = True
            self.models.events.add(
                model, "error-high", f"{what} is {error.recent:.3g}, above {bound:g}", value=error.recent
            )
        elif error.recent < 0.9 * bound and known.error:
            known.error = False
            self.models.events.add(model, "error-normal", f"{what} is {error.recent:.3g} again", value=error.recent)

    def _check_alarms(self, state: ModelState, known: _Known) -> None:
        """Report the anomalies since the last alert about some: the first at once, those that follow in one alert."""
        if not state.alarms or time.monotonic() - known.alarm_at < _ALARM_SECONDS:
            return
        alarms = list(state.alarms)
        state.alarms.clear()
        known.alarm_at = time.monotonic()
        worst = max(alarms, key=lambda alarm: alarm["score"])
        keys = list(dict.fromkeys(alarm["key"] for alarm in alarms if "key" in alarm))
        where = f" of {worst['key']}" if keys else ""
        many = "" if len(alarms) == 1 else f"{len(alarms):,} anomalies; most unusual: "
        because = list(worst["because"])
        text = f"{many}change {worst['seq']:,}{where}, p-value {worst['p_value']:.2g}, because of {_listed(because)}"
        more = {"keys": keys[:_MOST_KEYS]} if keys else {}
        self.models.events.add(
            state.name, "anomaly", text, features=because, count=len(alarms), value=worst["score"], seq=worst["seq"],
            **more,
        )  # fmt: skip

    def _check_labels(self, model: str, monitor: Monitor, known: _Known) -> None:
        usual, recent = monitor.usual_label_rate, monitor.label_rate
        if monitor.instances < 1_000 or usual < 0.05:
            return
        if recent < self.rules.label_rate_drop * usual and not known.labels:
            known.labels = True
            self.models.events.add(
                model, "labels-dropped", f"{recent:.0%} of instances get a label, usually {usual:.0%}"
            )
        elif recent > 0.5 * usual and known.labels:
            known.labels = False
            self.models.events.add(model, "labels-back", f"{recent:.0%} of instances get a label again")

    def _check_devices(self, state: ModelState, known: _Known) -> None:
        """Collect what happened to devices; raise alerts when nothing more arrives, or after some seconds."""
        if self._checks % _COMPARE_EVERY == 0:
            state.devices.compare_errors(shares=not is_regressor(state.learner))
        transitions = state.devices.check(int(time.time() * 1000))
        known.transitions += transitions
        known.quiet = 0 if transitions else known.quiet + 1
        known.collected = known.collected + 1 if known.transitions else 0
        if known.transitions and (known.quiet >= 2 or known.collected >= _COLLECT):
            for kind, text, keys, names in grouped(_without_common(known.transitions, state.monitor)):
                self.models.events.add(state.name, kind, text, keys=keys[:_MOST_KEYS], features=names[:_MOST_KEYS])
            known.transitions = []

    # ------------------------------------------------------------------ delivery

    def _send(self) -> None:
        """Send the events since the last call to the webhook and the command."""
        events = self.models.events
        if events.number > self._sent:
            new = [e for e in events.latest if e["number"] > self._sent and e["kind"] not in _ROUTINE]
            self._sent = events.number
            for event in new:
                self._deliver(event)

    def _deliver(self, event: dict[str, Any]) -> None:
        for target, deliver in ((self.rules.webhook, self._post), (self.rules.command, self._execute)):
            if target is None:
                continue
            if len(self._deliveries) >= _MOST_DELIVERIES:
                _failed("its target", RuntimeError(f"{_MOST_DELIVERIES} alerts are being delivered already"))
                continue
            task = asyncio.get_running_loop().create_task(deliver(target, event))
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)

    async def _post(self, url: str, event: dict[str, Any]) -> None:
        try:
            async with httpx.AsyncClient(timeout=_PATIENCE) as client:
                (await client.post(url, json=event)).raise_for_status()
        except httpx.HTTPError as error:
            _failed("the webhook", error)

    async def _execute(self, command: str, event: dict[str, Any]) -> None:
        """Run the command; kill it and everything it started after a timeout or when the server stops."""
        try:
            with tempfile.TemporaryFile() as file:
                file.write(write_json(event))
                file.seek(0)
                process = await asyncio.create_subprocess_shell(command, stdin=file, start_new_session=True)
        except OSError as error:
            _failed("the command", error)
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await process.wait()
        except TimeoutError:
            _failed("the command", TimeoutError(f"it took more than {_PATIENCE:g} s and was killed"))
            return
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            _failed("the command", RuntimeError(f"it ended with {process.returncode}"))


def _failed(what: str, error: Exception) -> None:
    warning(f"an alert did not reach {what}: {error!r}")


def _without_common(transitions: list[Transition], monitor: Monitor) -> list[Transition]:
    """Leave out sensors that all devices lost, which the alert of the model reports."""
    gone = {name for name in monitor.names() if monitor.presence(name) in ("silent", "gone")}
    return [one for one in transitions if one.kind != "sensor-silent" or one.detail not in gone]


def grouped(transitions: list[Transition]) -> list[tuple[str, str, list[Any], list[str]]]:
    """Return one alert for transitions that belong together: kind, text, keys, sensors."""
    alerts: list[tuple[str, str, list[Any], list[str]]] = []
    for kind, words in _WORDS.items():
        some = [one for one in transitions if one.kind == kind]
        if not some:
            continue
        keys = list(dict.fromkeys(one.key for one in some))
        if not kind.startswith("sensor"):
            more = f" ({some[0].detail})" if len(keys) == 1 and some[0].detail else ""
            text = f"{keys[0]}: {words}{more}" if len(keys) == 1 else f"{len(keys):,} devices: {words}: {_listed(keys)}"
            alerts.append((kind, text, keys, []))
            continue
        names = list(dict.fromkeys(one.detail for one in some))
        if len(keys) == 1:
            text = f"{keys[0]}: {_listed(names)}: {words}"
        elif len(names) == 1:
            text = f"{names[0]}: {words} in {len(keys):,} devices: {_listed(keys)}"
        else:
            text = f"{len(names):,} sensors of {len(keys):,} devices: {words}: {_listed(names)}; {_listed(keys)}"
        alerts.append((kind, text, keys, names))
    return alerts


def _listed(names: list[Any]) -> str:
    shown = ", ".join(map(str, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
