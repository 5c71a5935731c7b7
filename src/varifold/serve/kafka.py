"""Kafka bridge: learn readings and labels from topics, each message once, and write predictions to a topic.

The offsets of what was learned are stored in the transaction of the changes themselves, not in Kafka. After a crash
reading goes on exactly where the stored changes end, so no message is learned twice or left out. Predictions are sent
after the changes are on disk; how far they were sent is stored a little later. So after a crash the last ones may be
sent again, and none is missing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from varifold.base.json_text import write_json
from varifold.errors import ParameterError, VarifoldError
from varifold.serve import bridge
from varifold.serve.core.errors import NotFoundError, RejectedError, StoppedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Model, Models
from varifold.serve.core.state import Partition
from varifold.serve.extra import confluent_kafka

T = TypeVar("T")
_BATCH = 500
"""Most messages that are learned before their predictions are sent."""
_POLL, _ROUND_TRIP = 0.1, 5.0
"""Seconds to wait for messages, and for a response of a broker."""
_SLICE = 0.002
"""Seconds of work between two rounds of the event loop."""
_LATE_MS = 60_000
"""A label whose reading is unknown is dropped when readings this much younger have been learned."""
_LOOK_SECONDS = 30.0
"""Seconds between two looks for new partitions."""
_OURS = frozenset(
    {"bootstrap.servers", "group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"}
)


@dataclass(frozen=True)
class KafkaTopics:
    """Brokers, topics and model; with `keyed` the key of a message is the key of a learner."""

    brokers: str
    readings: str
    labels: str | None = None
    predictions: str | None = None
    model: str = "kafka"
    method: str = "auto"
    keyed: bool = False
    rules: InputRules | None = None
    start: str = "earliest"
    """Where a new model starts to read: `earliest` or `latest`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of librdkafka, such as those of TLS and SASL."""

    def __post_init__(self) -> None:
        names = [name for name in (self.readings, self.labels, self.predictions) if name]
        if len(set(names)) != len(names):
            raise ParameterError("readings, labels and predictions must be different topics of Kafka")
        ours = next((name for name in self.properties if name in _OURS), None)
        if ours is not None:
            raise ParameterError(f"the property {ours} is set by the server; remove it from --kafka-config")

    def clients(self) -> dict[str, Any]:
        """Return the properties of consumer and producer."""
        ours = {"bootstrap.servers": self.brokers, "client.id": f"varifold-{self.model}", "log_level": 2}
        return {**ours, **self.properties}

    def check(self) -> None:
        """Reject properties that librdkafka does not accept; no broker is needed."""
        try:
            confluent_kafka.Consumer({**self.clients(), "group.id": "check"}).close()
        except confluent_kafka.KafkaException as error:
            raise ParameterError(f"--kafka-config: {error.args[0].str()}") from error


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of properties: lines NAME=VALUE, as other clients of Kafka have them; # starts a comment."""
    properties = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"{path}, line {number}: {text[:60]!r} is not NAME=VALUE")
        properties[name.strip()] = value.strip()
    return properties


class KafkaBridge(bridge.Bridge):
    """Feeds one model from topics of Kafka until cancelled."""

    name = "kafka"

    def __init__(self, models: Models, topics: KafkaTopics) -> None:
        super().__init__(models, topics.model)
        self.topics = topics
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="kafka")
        """Sole thread that calls the consumer, and waits for the delivery of predictions."""
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Feed the model; open the topics again after an error, for new partitions and for a new model."""
        topics, pause = self.topics, bridge.FIRST_PAUSE
        await self.ensure_model(topics.method, topics.rules, keyed=topics.keyed)
        while True:
            try:
                await self._feed(await self._available())
                pause = bridge.FIRST_PAUSE
                continue
            except confluent_kafka.KafkaException as error:
                reason = error.args[0].str() if hasattr(error.args[0], "str") else str(error)
                self.problem(f"{reason}; trying again")
            except StoppedError:  # what is not stored is read again
                pass
            await asyncio.sleep(pause)
            pause = min(2 * pause, bridge.LONGEST_PAUSE)

    async def _available(self) -> Model:
        """Wait until the model exists and accepts changes; meanwhile the messages stay in Kafka."""
        while True:
            try:
                if (model := self.models[self.topics.model]).stopped is None:
                    return model
            except (NotFoundError, StoppedError):
                pass
            await asyncio.sleep(1.0)

    async def _feed(self, model: Model) -> None:
        feed = Feed(self, model)
        try:
            await feed.open()
            self._problem = ""
            self.say(f"reading {feed.described()}")
            look = time.monotonic() + _LOOK_SECONDS
            while self._is_served(model):
                await feed.step()
                if time.monotonic() > look:
                    look = time.monotonic() + _LOOK_SECONDS
                    if await feed.has_new_partitions():
                        return
        finally:
            await feed.close()

    def _is_served(self, model: Model) -> bool:
        return self.topics.model in self.models and self.models[self.topics.model] is model

    def _first_problem(self, text: str) -> None:
        if not self._problem:
            self.problem(text)

    def on_error(self, error: Any) -> None:
        """Handle an error of a client, in any thread; the client retries automatically."""
        names = ("_ALL_BROKERS_DOWN", "_AUTHENTICATION", "_SSL", "_RESOLVE")
        if error.fatal() or error.name() in names:
            self._loop.call_soon_threadsafe(self._first_problem, f"{error.str()}; trying again")

    def solved(self) -> None:
        """Report that messages arrive again after a problem."""
        if self._problem:
            self._problem = ""
            self.say("messages arrive again")

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function of the clients in the thread of the bridge."""
        return await self._loop.run_in_executor(self.thread, partial(function, *arguments))


class Feed:
    """Open topics: reads messages in batches, applies them, sends their predictions."""

    def __init__(self, owner: KafkaBridge, model: Model) -> None:
        self.owner = owner
        self.topics = owner.topics
        self.model = model
        common = {**self.topics.clients(), "error_cb": owner.on_error}
        reading = {"group.id": f"varifold-{model.name}", "enable.auto.commit": False, "auto.offset.reset": "error"}
        self.consumer = confluent_kafka.Consumer(common | reading)
        self.producer = confluent_kafka.Producer(common) if self.topics.predictions else None
        self._partitions: list[Partition] = []
        self._late: dict[Partition, deque[Any]] = {}
        self._bounds: dict[Partition, dict[Partition, int]] = {}
        self._times: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._read: dict[Partition, int] = {}
        """First offset of each partition that was not processed since the last time that this was stored."""
        self._undelivered: Any = None
        self._lag_at = 0.0

    # ------------------------------------------------------------------ opening and closing

    async def open(self) -> None:
        """Find the partitions and start to read where the stored changes end."""
        self._partitions = await self.owner.call(self._find)
        known = {topic for topic, _ in self.model.state.offsets}
        ends = await self.owner.call(self._ends, self._partitions)
        positions = []
        for at in self._partitions:
            positions.append(confluent_kafka.TopicPartition(*at, await self._position(at, *ends[at], at[0] in known)))
        await self.owner.call(self.consumer.assign, positions)

    def _find(self) -> list[Partition]:
        found = []
        for topic in filter(None, (self.topics.readings, self.topics.labels)):
            described = self.consumer.list_topics(topic, timeout=_ROUND_TRIP).topics[topic]
            if described.error is not None:
                raise confluent_kafka.KafkaException(described.error)
            found += [(topic, number) for number in sorted(described.partitions)]
        return found

    def _ends(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[int, int]]:
        """Ask the brokers for the first offset of each partition and the one after its last."""
        get = self.consumer.get_watermark_offsets
        return {at: get(confluent_kafka.TopicPartition(*at), timeout=_ROUND_TRIP) for at in partitions}

    async def _position(self, at: Partition, low: int, high: int, known: bool) -> int:
        """Return the offset to read from; what the topic no longer has is reported."""
        stored = self.model.state.offsets.get(at)
        if stored is None:
            first = high if self.topics.start == "latest" and not known else low
            await self._advance(at, learned=first, sent=first)
            return first
        learned, sent = stored
        if learned > high:
            self.owner.say(
                f"{_shown(at)} ends at offset {high:,}, but {learned:,} are learned: it was made again or has lost its "
                "end. Reading goes on at its end",
                kind="kafka-lost",
            )
            learned = sent = high
        elif learned < low:
            self.owner.say(f"{low - learned:,} messages of {_shown(at)} were deleted unread", kind="kafka-lost")
            learned = low
        sent = max(low, min(sent, learned))
        if (learned, sent) != stored:
            await self._advance(at, learned=learned, sent=sent)
        return sent if self._predicts(at) else learned

    def _predicts(self, at: Partition) -> bool:
        return self.producer is not None and at[0] == self.topics.readings

    async def _advance(self, at: Partition, **offsets: int) -> None:
        await bridge.when_not_busy(partial(self.model.advance, at, **offsets))

    async def has_new_partitions(self) -> bool:
        """Return whether a topic has more partitions than before."""
        return len(await self.owner.call(self._find)) > len(self._partitions)

    async def close(self) -> None:
        """Close the clients."""
        for key in [key for key in self.owner.models.lag if key[0] == self.model.name]:
            del self.owner.models.lag[key]
        await self.owner.call(self.consumer.close)

    def described(self) -> str:
        """Name the topics with the number of their partitions."""
        topics = [topic for topic, _ in self._partitions]
        return ", ".join(f"{topic} ({topics.count(topic)})" for topic in dict.fromkeys(topics))

    # ------------------------------------------------------------------ messages

    async def step(self) -> None:
        """Learn the messages that have arrived, then send their predictions."""
        messages = await self.owner.call(self._batch)
        pending: list[tuple[Any, Any]] = []
        started = time.perf_counter()
        for message in messages:
            if (error := message.error()) is not None:
                raise confluent_kafka.KafkaException(error)
            if message.topic() == self.topics.labels:
                self._late.setdefault(_place(message), deque()).append(message)
                continue
            await self._apply(message, pending)
            if time.perf_counter() - started > _SLICE:
                await asyncio.sleep(0)
                started = time.perf_counter()
        for at in self._late:
            await self._apply_labels(at, pending)
        if messages:
            self.owner.solved()
        await self._finish(pending, idle=not messages)
        self._measure_lag()

    def _batch(self) -> list[Any]:
        """Wait for a message; return it with the others that are there."""
        first: list[Any] = self.consumer.consume(1, _POLL)
        return first + self.consumer.consume(_BATCH - 1, 0) if first else first

    async def _apply_labels(self, at: Partition, pending: list[tuple[Any, Any]]) -> None:
        """Learn the labels of a partition in order, up to one whose reading may still come."""
        queue = self._late[at]
        while queue and await self._apply(queue[0], pending):
            queue.popleft()
            self._bounds.pop(at, None)
        part = confluent_kafka.TopicPartition(*at)
        if len(queue) > 2 * _BATCH and at not in self._paused:
            self._paused.add(at)
            await self.owner.call(self.consumer.pause, [part])
        elif len(queue) < _BATCH and at in self._paused:
            self._paused.discard(at)
            await self.owner.call(self.consumer.resume, [part])

    async def _apply(self, message: Any, pending: list[tuple[Any, Any]]) -> bool:
        """Apply a message unless it was learned before; return False if it is a label whose reading may still come."""
        at, offset = _place(message), message.offset()
        learned, sent = self.model.state.offsets[at]
        if offset < learned:
            if self._predicts(at) and offset >= sent:
                self._predict_again(message, pending)
            return True
        try:
            body = self._change(message)
            await self.model.turn()
            submit = partial(self.model.submit, body, write_json(body), (at, offset + 1))
            pending.append((message, await bridge.when_not_busy(submit)))
        except StoppedError:
            raise
        except VarifoldError as error:
            if at[0] == self.topics.labels and type(error) is NotFoundError and await self._may_come(at, message):
                return False
            self.owner.rejected(f"{_shown(at)}/{offset}", error)
            await self._advance(at, learned=offset + 1)
        self._times[at] = _time_of(message)
        self._read[at] = offset + 1
        return True

    def _change(self, message: Any) -> dict[str, Any]:
        try:
            value, key = message.value(), message.key()
            if value is None:
                raise RejectedError("the message has no value")
            named = None
            if key is not None and self.model.state.keyed and self.model.state.rules.key is None:
                named = key.decode("utf-8")
            if message.topic() == self.topics.labels:
                return bridge.label(self.model, value, named)
            body = bridge.reading(self.model, value, named)
            if self.producer is None:
                body.pop("predict", None)
            return body
        except UnicodeDecodeError as error:
            raise RejectedError("the key of the message is not UTF-8") from error
        except VarifoldError:
            raise
        except Exception as error:  # no message may end the server: it would be read again
            raise self.owner.unexpected(f"{_shown(_place(message))}/{message.offset()}", error) from error

    def _predict_again(self, message: Any, pending: list[tuple[Any, Any]]) -> None:
        """Predict a reading that was learned before a crash that may have lost its prediction."""
        try:
            body = self._change(message)
            pending.append((message, {**self.model.state.predict(body), **_given(body)}))
        except VarifoldError as error:
            self.owner.rejected(f"{_shown(_place(message))}/{message.offset()}", error)
        self._read[_place(message)] = message.offset() + 1

    async def _may_come(self, at: Partition, label: Any) -> bool:
        """Return whether the reading of a label may still come: topics have no common order.

        It cannot if everything is learned that the topic of readings had when the label was here, or if readings that
        are much younger than the label are learned.
        """
        readings = [part for part in self._partitions if part[0] == self.topics.readings]
        if at not in self._bounds:
            ends = await self.owner.call(self._ends, readings)
            self._bounds[at] = {part: high for part, (_, high) in ends.items()}
        written, offsets = _time_of(label), self.model.state.offsets
        return any(
            offsets[part][0] < self._bounds[at][part]
            and not (written > 0 and self._times.get(part, 0) > written + _LATE_MS)
            for part in readings
        )

    # ------------------------------------------------------------------ predictions

    async def _finish(self, pending: list[tuple[Any, Any]], *, idle: bool) -> None:
        """Wait until the changes are on disk, send the predictions, and note how far they are sent."""
        for message, done in pending:
            prediction = done if isinstance(done, dict) else await done
            if self._predicts(_place(message)):
                await self._send(message, prediction)
        if self.producer is not None:
            while await self.owner.call(self.producer.flush, 1.0):
                pass
            if self._undelivered is not None:
                raise confluent_kafka.KafkaException(self._undelivered)
        for at, offset in self._read.items():
            if idle:
                await self._advance(at, sent=offset)
            else:
                self.model.state.advance(at, sent=offset)  # written with the next change
        if idle:
            self._read.clear()

    async def _send(self, message: Any, prediction: dict[str, Any]) -> None:
        """Queue a prediction under the key of its reading; `source` is the place of the reading."""
        assert self.producer is not None
        assert self.topics.predictions is not None
        value = write_json({**prediction, "source": f"{_shown(_place(message))}/{message.offset()}"})
        while True:
            try:
                self.producer.produce(self.topics.predictions, value, message.key(), on_delivery=self._delivered)
                return
            except BufferError:
                await self.owner.call(self.producer.flush, 1.0)
            except confluent_kafka.KafkaException as error:
                if error.args[0].code() != confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                place = f"{_shown(_place(message))}/{message.offset()}"
                self.owner.rejected(place, RejectedError(f"its prediction of {len(value):,} bytes is too large"))
                return

    def _delivered(self, error: Any, message: Any) -> None:
        """Note, in the thread of the bridge, that a prediction was not accepted; it is made again after a pause."""
        if error is not None:
            self._undelivered = error

    def _measure_lag(self) -> None:
        """Update the number of messages that are not learned yet, once a second."""
        now = time.monotonic()
        if now < self._lag_at:
            return
        self._lag_at = now + 1.0
        for at in self._partitions:
            ends = self.consumer.get_watermark_offsets(confluent_kafka.TopicPartition(*at), cached=True)
            if ends is not None and ends[1] >= 0:
                self.owner.models.lag[self.model.name, at] = max(0, ends[1] - self.model.state.offsets[at][0])


def _place(message: Any) -> Partition:
    return message.topic(), message.partition()


def _shown(at: Partition) -> str:
    return f"{at[0]}/{at[1]}"


def _time_of(message: Any) -> int:
    """Return the time of a message in milliseconds; 0 if it has none."""
    kind, milliseconds = message.timestamp()
    return int(milliseconds) if kind else 0


def _given(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": body["id"]} if "id" in body else {}
