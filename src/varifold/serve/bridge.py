"""Functions of the bridges to MQTT and Kafka: turn messages into changes, and report what happens to them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from varifold.errors import VarifoldError
from varifold.serve.core import bodies, learners
from varifold.serve.core.errors import BusyError, RejectedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.log import failure, log
from varifold.serve.core.models import Model, ModelDescription, Models

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a connection is tried again: twice as long each time."""
_REPORTED, _SECONDS = 20, 10.0
"""Rejected messages that are reported, at the most, and the time for which this holds."""


def reading(model: Model, payload: bytes, key: str | None, parts: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the change of a reading, read by the model's input rules; `parts` are further features.

    A reading with the target is predicted and learned, one without it waits for its label. A detector scores and learns
    it; it waits for a label only under an id.
    """
    rules = model.state.rules
    body: dict[str, Any] = {"x": {**bodies.parse(payload), **(parts or {})}}
    if rules.id is None and (given := body["x"].pop("id", None)) is not None:
        body["id"] = given
    if key is not None:
        body["key"] = key
    rules.apply(body)
    if not model.state.detects:
        body["predict" if "y" in body else "keep"] = True
    elif "y" not in body and "id" in body and learners.learns_labels(model.state.learner):
        body["keep"] = True
    bodies.check_row(body)
    return body


def label(model: Model, payload: bytes, key: str | None) -> dict[str, Any]:
    """Return the change of a label, under the names that the model's input has for id and target."""
    rules = model.state.rules
    values = rules.flat(bodies.parse(payload))
    given, y = values.get(rules.id or "id"), values.get(rules.target or "y")
    if given is None:
        raise RejectedError('a label is {"id": ..., "y": ...}, with the id of its reading or its prediction')
    bodies.check_identifier("id", given)
    change = {"y": y if rules.target is None else rules.label(y)}
    if "w" in values:
        change["w"] = values["w"]
    bodies.clear_absent_label(change)
    bodies.check_label(change)
    if key is None or str(given).startswith(f"{model.name}.{model.state.incarnation}."):
        return {"id": given, **change}
    return {"id": given, "key": key, **change}


class Bridge:
    """Feeds one model; events and log lines have the name of the bridge."""

    name = ""

    def __init__(self, models: Models, model: str) -> None:
        self.models = models
        self.model = model
        self._rejections: deque[float] = deque(maxlen=_REPORTED)
        self._unreported = 0
        self._problem = ""

    async def ensure_model(self, method: str, rules: InputRules | None, *, keyed: bool) -> None:
        """Make the model unless it exists."""
        spec = ModelDescription(method, {}, "key" if keyed else None, rules or InputRules())
        await self.models.ensure(self.model, spec)

    def unexpected(self, source: str, error: Exception) -> VarifoldError:
        """Log an error that is not ours: no message may end the server, it would arrive again after the restart."""
        failure(f"{self.name}: a message of {source} failed", self.model, error)
        return RejectedError(f"unexpected {type(error).__name__}")

    def say(self, text: str, *, kind: str | None = None) -> None:
        """Add an event and a line in the log; what has no kind is normal."""
        self.models.events.add(self.model, kind or self.name, text)
        log(logging.INFO if kind is None else logging.WARNING, f"{self.name}: {text}", self.model)

    def problem(self, text: str) -> None:
        """Report a problem with the broker once, until it is over; other problems meanwhile are only logged."""
        if not self._problem:
            self.say(text, kind=f"{self.name}-failed")
        elif text != self._problem:
            log(logging.WARNING, f"{self.name}: {text}", self.model)
        self._problem = text

    def rejected(self, source: str, error: VarifoldError) -> None:
        """Report a rejected message; when there are many, some of them with the number of the others."""
        now = time.monotonic()
        if len(self._rejections) == _REPORTED and now - self._rejections[0] < _SECONDS:
            self._unreported += 1
            return
        self._rejections.append(now)
        others = f" ({self._unreported:,} others before it)" if self._unreported else ""
        self._unreported = 0
        self.say(f"a message of {source} was rejected: {error}{others}", kind=f"{self.name}-rejected")


async def when_not_busy(function: Any, *arguments: Any) -> Any:
    """Call a function that submits a change, again while too many changes wait for the disk."""
    while True:
        try:
            return function(*arguments)
        except BusyError:
            await asyncio.sleep(0.01)
