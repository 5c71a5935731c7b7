"""MQTT bridge: subscribe to readings and labels, publish predictions; nothing is lost between broker and disk.

A message is acknowledged to the broker only after its change is on disk, and the session outlives the connection. What
the broker therefore sends twice is recognised by its id.
"""

from __future__ import annotations

import asyncio
import re
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from varifold.base.json_text import write_json
from varifold.errors import ParameterError, VarifoldError
from varifold.serve.core import bodies
from varifold.serve.core.errors import BusyError, NotFoundError, RejectedError, StoppedError
from varifold.serve.core.models import Model, Models
from varifold.serve.extra import aiomqtt

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_WINDOW = 256


@dataclass(frozen=True)
class Topics:
    """Broker, topics and model. ``+`` in the patterns matches the key, which replaces ``{key}`` in `predictions`."""

    broker: str
    readings: str
    labels: str | None = None
    predictions: str | None = None
    model: str = "mqtt"
    method: str = "auto"
    username: str | None = None
    password: str | None = None

    def __post_init__(self) -> None:
        for pattern in (self.readings, self.labels or ""):
            if "#" in pattern or pattern.count("+") > 1:
                raise ParameterError(f"the topic {pattern!r} has more than one + or a #; one + is the key")
        if self.predictions and "{key}" in self.predictions and "+" not in self.readings:
            raise ParameterError(
                f"--predictions {self.predictions} needs a key, but --readings {self.readings} has no +"
            )
        self.address()

    def address(self) -> tuple[str, int]:
        """Return host and port."""
        host, colon, port = self.broker.rpartition(":")
        if not colon:
            return self.broker, 1883
        if not port.isdigit():
            raise ParameterError(f"--mqtt {self.broker} is not HOST:PORT")
        return host, int(port)

    @property
    def keyed(self) -> bool:
        """Whether the model has one learner per key."""
        return "+" in self.readings


def key_in(pattern: str, topic: str) -> str | None:
    """Return the part of a topic that matches the +; None without one."""
    expression = re.escape(pattern).replace(r"\+", "([^/]+)")
    match = re.fullmatch(expression, topic)
    return match[1] if match and match.groups() else None


class Bridge:
    """Feeds one model from a broker until cancelled; reconnects with increasing pauses if the connection is lost."""

    def __init__(self, models: Models, topics: Topics) -> None:
        self.models = models
        self.topics = topics
        self._pause = _FIRST_PAUSE

    async def run(self) -> None:
        """Feed the model until cancelled."""
        topics = self.topics
        if topics.model not in self.models:
            await self.models.create(topics.model, topics.method, {}, "key" if topics.keyed else None)
        while True:
            try:
                await self._connected()
            except* aiomqtt.MqttError as group:  # a task group is open while the connection lasts
                error = _first(group)
                self._say("mqtt", f"the connection to the broker failed ({error}); trying again in {self._pause:g} s")
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    async def _connected(self) -> None:
        host, port = self.topics.address()
        client = aiomqtt.Client(
            host,
            port,
            username=self.topics.username,
            password=self.topics.password,
            identifier=f"varifold-{self.topics.model}",
            clean_session=False,
        )
        client._client.manual_ack_set(True)  # aiomqtt has no API for it; without it a crash loses readings
        async with client:
            await client.subscribe(self.topics.readings, qos=1)
            if self.topics.labels:
                await client.subscribe(self.topics.labels, qos=1)
            self._say("mqtt", "connected to the broker")
            self._pause = _FIRST_PAUSE
            window = asyncio.Semaphore(_WINDOW)
            async with asyncio.TaskGroup() as tasks:
                async for message in client.messages:
                    await window.acquire()
                    done = await self._submit(message)
                    task = tasks.create_task(self._finish(client, message, done))
                    task.add_done_callback(lambda _: window.release())

    async def _submit(self, message: aiomqtt.Message) -> asyncio.Future[Any] | VarifoldError:
        """Apply the change of a message, in order of arrival, or return why it is rejected."""
        try:
            model = self.models[self.topics.model]
            body = self._change(model, message)
        except VarifoldError as error:
            return error
        except Exception as error:  # noqa: BLE001 - no message may end the server: the broker would send it again
            traceback.print_exc(file=sys.stderr)
            return RejectedError(f"unexpected {type(error).__name__}")
        await model.turn()
        while True:
            try:
                return model.submit(body, write_json(body))
            except BusyError:
                await asyncio.sleep(0.01)
            except VarifoldError as error:
                return error

    def _change(self, model: Model, message: aiomqtt.Message) -> dict[str, Any]:
        values = bodies.parse(bytes(message.payload))
        rules = model.state.rules
        if not self._is_reading(message):
            return self._label(model, message, rules.flat(values))
        key = key_in(self.topics.readings, message.topic.value)
        body: dict[str, Any] = {"x": values}
        if rules.id is None and (given := values.pop("id", None)) is not None:
            body["id"] = given
        if key is not None:
            body["key"] = key
        rules.apply(body)
        body["predict" if "y" in body else "keep"] = True
        bodies.check_row(body)
        return body

    def _label(self, model: Model, message: aiomqtt.Message, values: dict[str, Any]) -> dict[str, Any]:
        """Return the label in a message, under the names that the model's input has for id and target."""
        rules = model.state.rules
        given, y = values.get(rules.id or "id"), values.get(rules.target or "y")
        if given is None:
            raise RejectedError('a label is {"id": ..., "y": ...}, with the id of its reading or its prediction')
        label = {"y": y if rules.target is None else rules.label(y)}
        if "w" in values:
            label["w"] = values["w"]
        bodies.check_label(label)
        key = key_in(self.topics.labels or "", message.topic.value)
        if key is None or str(given).startswith(f"{model.name}.{model.state.incarnation}."):
            return {"id": given, **label}
        return {"id": given, "key": key, **label}

    def _is_reading(self, message: aiomqtt.Message) -> bool:
        return message.topic.matches(self.topics.readings)

    async def _finish(
        self, client: aiomqtt.Client, message: aiomqtt.Message, done: asyncio.Future[Any] | VarifoldError
    ) -> None:
        """Acknowledge a message once its change is on disk, and publish the prediction of a reading."""
        topic = message.topic.value
        try:
            if isinstance(done, VarifoldError):
                raise done
            prediction = await done
        except VarifoldError as error:
            if self._model_stopped():
                return  # not acknowledged: the broker sends it again at the next start
            self._say("mqtt-rejected", f"a message to {topic} was rejected: {error}")
        else:
            if self.topics.predictions and self._is_reading(message):
                await self._publish(client, message, prediction)
        client._client.ack(message.mid, message.qos)

    async def _publish(self, client: aiomqtt.Client, message: aiomqtt.Message, prediction: dict[str, Any]) -> None:
        key = key_in(self.topics.readings, message.topic.value)
        target = str(self.topics.predictions).replace("{key}", key or "")
        await client.publish(target, write_json(prediction), qos=1)

    def _model_stopped(self) -> bool:
        """Return whether the model exists but accepts no changes; a deleted one rejects them permanently."""
        try:
            return self.models[self.topics.model].stopped is not None
        except StoppedError:
            return True
        except NotFoundError:
            return False

    def _say(self, kind: str, text: str) -> None:
        self.models.events.add(self.topics.model, kind, text)
        print(f"varifold serve: mqtt: {text}", file=sys.stderr, flush=True)


def _first(error: BaseException) -> BaseException:
    """Return the first leaf error of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
