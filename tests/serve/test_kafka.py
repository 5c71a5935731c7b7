"""The Kafka bridge: each message is learned once, whatever is killed when.

The broker is the mock cluster of librdkafka, which speaks the protocol; VARIFOLD_KAFKA=HOST:PORT names a real one, and
VARIFOLD_KAFKA_CONFIG a file with the properties that it needs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.serve.server import Server, instance, numbers
from varifold.errors import ParameterError
from varifold.serve.core import database as store
from varifold.serve.core.database import Database
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits
from varifold.serve.kafka import Feed, KafkaBridge, KafkaTopics, read_properties

REAL = os.environ.get("VARIFOLD_KAFKA")
PROPERTIES = os.environ.get("VARIFOLD_KAFKA_CONFIG")
PARTITIONS = 4
KILLS = int(os.environ.get("VARIFOLD_KILLS", "3"))


class Broker:
    """A cluster of one broker, and topics that no other test uses."""

    def __init__(self) -> None:
        self.properties = read_properties(Path(PROPERTIES)) if PROPERTIES else {}
        mock = {} if REAL else {"test.mock.num.brokers": 1}
        self.producer = Producer({"bootstrap.servers": REAL or "mock", **mock, **self.properties, "log_level": 2})
        self.address = REAL or self._mocked()
        self.test = f"{os.getpid()}-{int(time.time())}-{next(numbers)}"

    def _mocked(self) -> str:
        brokers = self.producer.list_topics(timeout=10).brokers.values()
        return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def topic(self, kind: str) -> str:
        return f"{kind}-{self.test}"

    def send(self, kind: str, *values: Any, key: str | None = None, partition: int | None = None) -> None:
        """Write JSON, or bytes as they are, to the partitions in turn."""
        for i, value in enumerate(values):
            data = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
            at = i % PARTITIONS if partition is None else partition
            self.producer.produce(self.topic(kind), data, key, partition=at)
        assert self.producer.flush(20) == 0

    def options(self, *more: str, labels: bool = False, predictions: bool = False) -> list[str]:
        given = ["--kafka", self.address, "--kafka-readings", self.topic("readings"), "--kafka-method", "arow", *more]
        if labels:
            given += ["--kafka-labels", self.topic("labels")]
        if predictions:
            given += ["--kafka-predictions", self.topic("predictions")]
        return given + (["--kafka-config", PROPERTIES] if PROPERTIES else [])

    def predictions(self, n: int, repeated: int = 0) -> list[dict[str, Any]]:
        """Read predictions until n different sources were read, and as many more as were repeated."""
        consumer = Consumer(
            {"bootstrap.servers": self.address, "group.id": "test", "enable.auto.commit": False, **self.properties,
             "auto.offset.reset": "earliest", "log_level": 2}
        )  # fmt: skip
        topic, end = self.topic("predictions"), time.monotonic() + 30
        while not (parts := consumer.list_topics(topic, timeout=10).topics[topic].partitions):
            assert time.monotonic() < end, "the topic does not exist"
        consumer.assign([TopicPartition(topic, part, 0) for part in parts])
        found: list[dict[str, Any]] = []
        while len({one["source"] for one in found}) < n or len(found) < n + repeated:
            if time.monotonic() > end:
                break
            for message in consumer.consume(500, 0.5):
                assert message.error() is None
                found.append({**orjson.loads(message.value()), "key": message.key()})
        consumer.close()
        return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.producer.flush(5)


def wait_for(server: Server, condition: Callable[[dict[str, Any]], bool], seconds: float = 120.0) -> dict[str, Any]:
    """Wait until the model, which may not be made yet, shows what fulfils a condition."""
    end = time.monotonic() + seconds
    with server.client() as client:
        while time.monotonic() < end:
            response = client.get("/models/kafka")
            if response.status_code == 200 and condition(shown := response.json()):
                return dict(shown)
            time.sleep(0.05)
    raise AssertionError(f"{response.text}: {server.log()}")


def record(i: int) -> dict[str, Any]:
    """A reading with its target."""
    made = instance(i)
    return {**made["x"], "state": made["y"]}


def test_a_prediction_that_is_too_large_holds_up_nothing(
    make_server: Callable[..., Server], broker: Broker, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    properties = {**broker.properties, "message.max.bytes": "1000"}
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    broker.send("readings", *[{"load": i, "state": "s" * 900} for i in range(3)], partition=0)
    rules = ["--kafka-input", '{"target": "state"}']
    server = make_server(*broker.options(*rules, predictions=True), "--kafka-config", str(config)).start()
    server.wait_for_line("too large", 30)
    broker.send("readings", {"load": 3}, partition=0)
    wait_for(server, lambda shown: shown["seq"] == 4, 30)
    assert "trying again" not in server.log()
    assert server.stop() == 0


TARGET = ("--kafka-input", '{"target": "state"}')


def test_each_message_is_learned_once_over_kills(make_server: Callable[..., Server], broker: Broker) -> None:
    """Messages without ids: only the stored offsets tell what was learned."""
    broker.send("readings", *map(record, range(2_000)))
    server = make_server(*broker.options(*TARGET, predictions=True), "--snapshot-every", "700")
    total, seen = 2_000, 0
    for _ in range(KILLS):
        server.start()
        seen = int(wait_for(server, lambda shown, least=seen: shown["seq"] > least + 300)["seq"])  # type: ignore[misc]
        broker.send("readings", *map(record, range(total, total + 500)))
        total += 500
        server.kill()
        seq, learned = _stored(server.folder)
        assert seq == learned >= seen, "the offsets and the changes are one transaction"
    server.start()
    shown = wait_for(server, lambda shown: shown["steps"] >= total)
    time.sleep(0.5)
    with server.client() as client:
        assert (shown["seq"], client.get("/models/kafka").json()["steps"]) == (total, total)
        lag = f'varifold_kafka_lag{{model="kafka",partition="0",topic="{broker.topic("readings")}"}} 0.0'
        end = time.monotonic() + 20  # it is measured once a second
        while lag not in client.get("/metrics").text:
            assert time.monotonic() < end, "the lag is not 0"
            time.sleep(0.2)
    sources = Counter(one["source"] for one in broker.predictions(total))
    assert len(sources) == total, "no prediction is missing"
    assert server.stop() == 0


def test_predictions_that_were_not_sent_are_made_again(make_server: Callable[..., Server], broker: Broker) -> None:
    """More of them than one batch holds; the readings are not learned again."""
    broker.send("readings", *map(record, range(1_200)), partition=0)
    server = make_server(*broker.options(*TARGET, predictions=True)).start()
    wait_for(server, lambda shown: shown.get("steps") == 1_200)
    assert server.stop() == 0
    assert len(broker.predictions(1_200)) == 1_200
    database = Database(server.folder)
    (row,) = database.models()
    change = (broker.topic("readings"), 0, 1_200, 0)
    database.commit([store.Written(row, [], [], [], [], [], False, [change])])
    database.close(clean=True)
    server.start()
    assert len(broker.predictions(1_200, repeated=1_200)) == 2_400
    wait_for(server, lambda shown: (shown["steps"], shown["seq"]) == (1_200, 1_200))


def _stored(folder: Path) -> tuple[int, int]:
    """The sequence number of the model, and the sum of the learned offsets."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    database = Database(copy)
    (row,) = database.models()
    learned = sum(one[2] for one in database.offsets(row))
    database.close()
    return row.seq, learned


def test_labels_find_their_readings_in_any_order(make_server: Callable[..., Server], broker: Broker) -> None:
    """The topic of labels is read before that of the readings; one label has no reading at all."""
    broker.send("labels", *({"id": i, "y": "up" if i % 2 else "down"} for i in range(200)), {"id": "none", "y": "up"})
    broker.send("labels", *({"id": i, "y": "up" if i % 2 else "down"} for i in range(200, 400)))
    broker.send("readings", *({"load": float(i % 2), "id": i} for i in range(400)))
    server = make_server(*broker.options(labels=True, predictions=True)).start()
    shown = wait_for(server, lambda shown: shown.get("steps") == 400)
    assert shown["waiting"] == 0
    server.wait_for_line("was rejected: no instance with the id 'none' waits for a label")
    assert {one["id"] for one in broker.predictions(400)} == set(range(400))
    for i in range(400, 420):  # a label right after its reading, while both topics are read to their ends
        broker.send("readings", {"load": float(i % 2), "id": i}, partition=i % PARTITIONS)
        broker.send("labels", {"id": i, "y": "up" if i % 2 else "down"}, partition=1)
    wait_for(server, lambda shown: shown.get("steps") == 420)
    assert server.stop() == 0
    server.start()
    assert wait_for(server, lambda shown: shown.get("steps") == 420)["waiting"] == 0


def test_keys_of_messages_are_devices(make_server: Callable[..., Server], broker: Broker) -> None:
    for key in ("a", "b"):
        broker.send("readings", *({"load": float(i % 2), "id": i} for i in range(20)), key=key)
        broker.send("labels", *({"id": i, "y": key} for i in range(20)), key=key)
    server = make_server(*broker.options("--kafka-keyed", labels=True, predictions=True)).start()
    wait_for(server, lambda shown: shown.get("steps") == 40)
    with server.client() as client:
        listed = client.get("/models/kafka/devices").json()
        assert {one["key"] for one in listed["devices"]} == {"a", "b"}
        body = {"key": "b", "x": {"load": 1.0}}
        assert client.post("/models/kafka/predict", json=body).json()["label"] == "b"
    assert {one["key"] for one in broker.predictions(40)} == {b"a", b"b"}


def test_no_message_ends_the_server_and_none_is_read_twice(make_server: Callable[..., Server], broker: Broker) -> None:
    wrong = [None, b"", b"{", b"\xff", b"[]", b"3", b'{"id": {}}', b'{"a": Infinity}', b"[" * 50_000, b'{"a": [1]}']
    broker.send("readings", *wrong, *map(record, range(10)), key=None)
    broker.send("labels", *wrong, {"id": "none", "y": "up"}, {"y": "up"})
    server = make_server(*broker.options(*TARGET, labels=True)).start()
    wait_for(server, lambda shown: shown.get("steps") == 10)
    server.wait_for_line("was rejected")
    end = time.monotonic() + 20
    while _stored(server.folder)[1] < 32 and time.monotonic() < end:
        time.sleep(0.1)
    assert _stored(server.folder)[1] == 32, "rejected messages are passed"
    server.kill()
    server.start()
    server.wait_for_line("reading ")
    broker.send("readings", record(10))
    wait_for(server, lambda shown: shown.get("steps") == 11)
    assert "was rejected" not in server.log()
    assert server.stop() == 0


@pytest.mark.skipif(REAL is not None, reason="only the mock cluster deletes messages at once")
def test_messages_that_were_deleted_unread_are_reported(make_server: Callable[..., Server], broker: Broker) -> None:
    broker.send("readings", *map(record, range(8)))
    server = make_server(*broker.options(*TARGET)).start()
    wait_for(server, lambda shown: shown.get("steps") == 8)
    assert server.stop() == 0
    large = {f"{i:0>500}": float(i) for i in range(300)}
    broker.send("readings", *({**large, "state": "up"} for _ in range(60)), partition=0)
    server.start()
    server.wait_for_line("were deleted unread")
    shown = wait_for(server, lambda shown: shown["steps"] > 8)
    assert shown["steps"] < 68


def test_a_new_model_may_start_at_the_end(make_server: Callable[..., Server], broker: Broker) -> None:
    broker.send("readings", *map(record, range(8)))
    server = make_server(*broker.options(*TARGET, "--kafka-from", "latest")).start()
    server.wait_for_line("reading ")
    broker.send("readings", *map(record, range(8, 11)))
    wait_for(server, lambda shown: shown.get("steps") == 3)
    server.kill()
    broker.send("readings", record(11))
    server.start()
    assert wait_for(server, lambda shown: shown.get("steps") == 4)["seq"] == 4


def test_a_model_that_is_deleted_and_made_again_reads_again(make_server: Callable[..., Server], broker: Broker) -> None:
    broker.send("readings", *map(record, range(12)))
    server = make_server(*broker.options(*TARGET)).start()
    wait_for(server, lambda shown: shown.get("steps") == 12)
    with server.client() as client:
        assert client.delete("/models/kafka").status_code == 200
        made = {"method": "pa", "input": {"target": "state"}}
        assert client.put("/models/kafka", json=made).status_code == 201
    wait_for(server, lambda shown: shown.get("steps") == 12)
    assert server.stop() == 0


def test_brokers_that_are_away_do_not_stop_the_server(make_server: Callable[..., Server]) -> None:
    server = make_server("--kafka", "127.0.0.1:9", "--kafka-readings", "readings").start()
    server.wait_for_line("kafka: ")
    with server.client() as client:
        assert client.get("/readyz").status_code == 200
    assert server.stop() == 0


def with_feed(folder: Path, work: Callable[[Feed], Any]) -> None:
    """Do some work on topics whose broker is away."""

    async def main() -> None:
        models = Models(folder, Policy(), Limits(), lambda reason: None)
        model = await models.create("kafka", "arow", {})
        topics = KafkaTopics("127.0.0.1:9", "readings", "labels", "predictions")
        feed = Feed(KafkaBridge(models, topics), model)
        await work(feed)
        await feed.close()
        await models.stop()

    asyncio.run(main())


def test_an_offset_is_not_sent_while_its_prediction_is_not_delivered(tmp_path: Path) -> None:
    async def work(feed: Feed) -> None:
        feed._read["readings", 0] = 7
        feed._delivered(KafkaError(KafkaError._MSG_TIMED_OUT), None)
        with pytest.raises(KafkaException):
            await feed._finish([], idle=True)
        assert feed.model.state.offsets == {}

    with_feed(tmp_path, work)


def test_a_label_waits_for_its_reading_until_much_younger_ones_are_learned(tmp_path: Path) -> None:
    label = SimpleNamespace(timestamp=lambda: (1, 1_000_000))
    readings, labels = ("readings", 0), ("labels", 0)

    async def work(feed: Feed) -> None:
        feed._partitions, feed._bounds = [readings, labels], {labels: {readings: 10}}
        for learned, time_of_reading, may_come in (
            (5, 0, True), (5, 1_060_000, True), (5, 1_060_001, False), (9, 0, True), (10, 0, False),
        ):  # fmt: skip
            feed.model.state.offsets[readings], feed._times[readings] = (learned, learned), time_of_reading
            assert await feed._may_come(labels, label) == may_come

    with_feed(tmp_path, work)


def test_topics_and_properties_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="different topics"):
        KafkaTopics("a:1", "readings", "readings")
    with pytest.raises(ParameterError, match=r"group\.id is set by the server"):
        KafkaTopics("a:1", "readings", properties={"group.id": "mine"})
    with pytest.raises(ParameterError, match=r'--kafka-config: No such configuration property: "sasl\.word"'):
        KafkaTopics("a:1", "readings", properties={"sasl.word": "a"}).check()
    path = tmp_path / "client.properties"
    path.write_text("# secured\nsecurity.protocol = SASL_SSL\n\nsasl.password=a=b\n")
    assert read_properties(path) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b"}
    path.write_text("security.protocol\n")
    with pytest.raises(ParameterError, match="line 1"):
        read_properties(path)
