"""MQTT bridge: subscribe to readings and labels, publish predictions; nothing is lost between broker and disk.

A message is acknowledged to the broker only after its change is on disk, and the session outlives the connection. What
the broker therefore sends twice is recognised by its id.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from varifold.base.json_text import write_json
from varifold.errors import ParameterError, VarifoldError
from varifold.serve import bridge
from varifold.serve.core.errors import NotFoundError, RejectedError, StoppedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Model, Models
from varifold.serve.extra import aiomqtt

_WINDOW = 256
"""Most messages in progress: the broker sends no more before the first of them are acknowledged."""
_SESSION_SECONDS = 7 * 24 * 3600
"""Seconds for which the broker keeps messages for a server that is away."""
_LONGEST_TOPIC = 65_535
_PART = re.compile(r"\{(\w+)\}|\+")


@dataclass(frozen=True)
class Topics:
    """Broker, topics and model.

    ``{key}``, or ``+``, in a pattern matches the key, which replaces ``{key}`` in `predictions`; other names in braces
    match parts of a topic that become features of a reading.
    """

    broker: str
    readings: str
    labels: str | None = None
    predictions: str | None = None
    model: str = "mqtt"
    method: str = "auto"
    username: str | None = None
    password: str | None = None
    rules: InputRules | None = None
    tls: bool = False
    ca: Path | None = None
    version: str = "5"

    def __post_init__(self) -> None:
        for pattern in (self.readings, *([] if self.labels is None else [self.labels])):
            names = names_in(pattern)
            if "#" in pattern or len(set(names)) != len(names):
                raise ParameterError(
                    f"the topic {pattern!r} has two keys, a name twice or a #; {{key}} or one + is the key"
                )
            if not pattern or "\0" in pattern or any(p != "+" and "+" in p for p in subscription(pattern).split("/")):
                raise ParameterError(f"{pattern!r} is no topic with {{key}}, + or {{name}} between its slashes")
        if self.predictions is not None:
            self._check_predictions(self.predictions)
        self.address()

    def _check_predictions(self, topic: str) -> None:
        """Reject a topic that nothing can be published to, or whose names the topic of readings does not have."""
        if not topic or set(topic) & set("+#\0"):
            raise ParameterError(f"--predictions {topic!r} is not the name of a topic, which has no +, # and null")
        missing = set(names_in(topic)) - set(names_in(self.readings))
        if missing:
            name = min(missing)
            raise ParameterError(f"--predictions {topic} needs {{{name}}}, but --readings {self.readings} has none")

    def address(self) -> tuple[str, int]:
        """Return host and port."""
        host, colon, port = self.broker.rpartition(":")
        if not colon:
            return self.broker, 8883 if self.tls else 1883
        if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
            raise ParameterError(f"--mqtt {self.broker} is not HOST:PORT, with a port from 1 to 65535")
        return host, int(port)

    @property
    def keyed(self) -> bool:
        """Whether the model has one learner per key."""
        return "key" in names_in(self.readings)


def names_in(pattern: str) -> list[str]:
    """Return the names of the parts of a pattern that vary; + is the key."""
    return [part[1] or "key" for part in _PART.finditer(pattern)]


def subscription(pattern: str) -> str:
    """Return the pattern that a broker understands."""
    return _PART.sub("+", pattern)


def parts_of(pattern: str, topic: str) -> dict[str, str]:
    """Return the parts of a topic that vary, by name; empty if the topic does not match."""
    expression = "".join(
        "([^/]+)" if _PART.fullmatch(piece) else re.escape(piece) for piece in re.split(r"(\{\w+\}|\+)", pattern)
    )
    match = re.fullmatch(expression, topic)
    return dict(zip(names_in(pattern), match.groups(), strict=True)) if match else {}


class MqttBridge(bridge.Bridge):
    """Feeds one model from a broker until cancelled; reconnects with increasing pauses if the connection is lost."""

    name = "mqtt"

    def __init__(self, models: Models, topics: Topics) -> None:
        super().__init__(models, topics.model)
        self.topics = topics
        self._pause = bridge.FIRST_PAUSE

    async def run(self) -> None:
        """Feed the model until cancelled."""
        topics = self.topics
        await self.ensure_model(topics.method, topics.rules, keyed=topics.keyed)
        while True:
            try:
                await self._connected()
            except* aiomqtt.MqttError as group:  # a task group is open while the connection lasts
                error = _first(group)
                self.problem(f"the connection to the broker failed ({error}); trying again")
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, bridge.LONGEST_PAUSE)

    async def _connected(self) -> None:
        host, port = self.topics.address()
        client = aiomqtt.Client(
            host,
            port,
            username=self.topics.username,
            password=self.topics.password,
            identifier=f"varifold-{self.topics.model}",
            tls_context=ssl.create_default_context(cafile=self.topics.ca) if self.topics.tls else None,
            max_inflight_messages=_WINDOW,
            **_session(self.topics.version),
        )
        client.pending_calls_threshold = 2 * _WINDOW  # it warns of more predictions on their way
        client._client.manual_ack_set(True)  # aiomqtt has no API for it; without it a crash loses readings
        async with client:
            await client.subscribe(subscription(self.topics.readings), qos=1)
            if self.topics.labels:
                await client.subscribe(subscription(self.topics.labels), qos=1)
            self._problem = ""
            self.say("connected to the broker")
            self._pause = bridge.FIRST_PAUSE
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
            return self.unexpected(message.topic.value, error)
        await model.turn()
        try:
            done: asyncio.Future[Any] = await bridge.when_not_busy(model.submit, body, write_json(body))
        except VarifoldError as error:
            return error
        return done

    def _change(self, model: Model, message: aiomqtt.Message) -> dict[str, Any]:
        payload, topic = bytes(message.payload), message.topic.value
        if not self._is_reading(message):
            return bridge.label(model, payload, parts_of(self.topics.labels or "", topic).get("key"))
        parts = parts_of(self.topics.readings, topic)
        return bridge.reading(model, payload, parts.pop("key", None), parts)

    def _is_reading(self, message: aiomqtt.Message) -> bool:
        return message.topic.matches(subscription(self.topics.readings))

    async def _finish(
        self, client: aiomqtt.Client, message: aiomqtt.Message, done: asyncio.Future[Any] | VarifoldError
    ) -> None:
        """Acknowledge a message once its change is on disk, and publish the prediction of a reading."""
        try:
            if isinstance(done, VarifoldError):
                raise done
            prediction = await done
            if self.topics.predictions and self._is_reading(message):
                await self._publish(client, message, prediction)
        except VarifoldError as error:
            if self._model_stopped():
                return  # not acknowledged: the broker sends it again at the next start
            self.rejected(message.topic.value, error)
        client._client.ack(message.mid, message.qos)

    async def _publish(self, client: aiomqtt.Client, message: aiomqtt.Message, prediction: dict[str, Any]) -> None:
        parts = parts_of(self.topics.readings, message.topic.value)
        target = _PART.sub(lambda name: parts[name[1]], str(self.topics.predictions))
        if len(target.encode()) > _LONGEST_TOPIC:
            raise RejectedError(f"the topic of its prediction has more than {_LONGEST_TOPIC:,} bytes")
        await client.publish(target, write_json(prediction), qos=1)

    def _model_stopped(self) -> bool:
        """Return whether the model exists but accepts no changes; a deleted one rejects them permanently."""
        try:
            return self.models[self.topics.model].stopped is not None
        except StoppedError:
            return True
        except NotFoundError:
            return False


def _session(version: str) -> dict[str, Any]:
    """Return the options of a session that outlives the connection and bounds the messages in progress."""
    if version != "5":
        return {"clean_session": False}
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = _SESSION_SECONDS
    properties.ReceiveMaximum = _WINDOW
    return {"protocol": aiomqtt.ProtocolVersion.V5, "clean_start": False, "properties": properties}


def _first(error: BaseException) -> BaseException:
    """Return the first leaf error of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
