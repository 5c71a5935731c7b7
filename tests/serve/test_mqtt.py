"""The MQTT bridge against a real broker: answers, labels, duplicates, and messages sent while the server was away."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiomqtt
import orjson
import pytest

from tests.serve.conftest import mosquitto
from tests.serve.server import Server
from tests.serve.test_running import certificate
from varifold.errors import ParameterError
from varifold.serve.core.errors import RejectedError, StoppedError
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits
from varifold.serve.mqtt import MqttBridge, Topics, parts_of, subscription
from varifold.serve.server import Settings, serve


class Broker:
    """A broker on a free port of this machine."""

    def __init__(self, folder: Path, more: str = "allow_anonymous true\n") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._config = folder / "mosquitto.conf"
        self._config.write_text(f"listener {self.port} 127.0.0.1\n{more}persistence false\nuser root\n")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([str(mosquitto()), "-c", str(self._config)], stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.stop()


@pytest.fixture
def broker(running: Broker) -> int:
    """The port of a broker."""
    return running.port


BURST = 3_000
"""Messages of a burst."""


def options(port: int) -> list[str]:
    topics = ["--readings", "plant/+/reading", "--labels", "plant/+/label", "--predictions", "plant/{key}/prediction"]
    return ["--mqtt", f"127.0.0.1:{port}", *topics, "--mqtt-method", "arow"]


async def _answers(client: aiomqtt.Client) -> AsyncIterator[dict[str, Any]]:
    async for message in client.messages:
        yield {"topic": message.topic.value, **orjson.loads(bytes(message.payload))}


@pytest.mark.mosquitto
def test_readings_are_answered_and_learned_when_labels_come(make_server: Callable[..., Server], broker: int) -> None:
    server = make_server(*options(broker)).start()
    server.wait_for_line("connected to the broker")

    async def main() -> list[dict[str, Any]]:
        found = []
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            await client.subscribe("plant/+/prediction", qos=1)
            answers = _answers(client)
            for i in range(12):
                for key, label in (("a", "up"), ("b", "down")):
                    reading = {"load": float(i % 2), "id": i}
                    for _ in range(1 + i % 2):  # every other reading comes twice
                        await client.publish(f"plant/{key}/reading", orjson.dumps(reading), qos=1)
                        found.append(await asyncio.wait_for(anext(answers), 10))
                    await client.publish(f"plant/{key}/label", orjson.dumps({"id": i, "y": label}), qos=1)
            await client.publish("plant/a/reading", b"{", qos=1)
            await client.publish("plant/a/reading", b'{"load": 1.0, "id": "last"}', qos=1)
            found.append(await asyncio.wait_for(anext(answers), 10))
        return found

    found = asyncio.run(main())
    assert found[-1]["topic"] == "plant/a/prediction"
    assert (found[-1]["label"], found[-1]["id"]) == ("up", "last")
    assert found[-2]["label"] == "down"
    with server.client() as client:
        shown = client.get("/models/mqtt").json()
    assert (shown["key"], shown["steps"], shown["waiting"]) == ("key", 24, 1)
    assert "a message of plant/a/reading was rejected" in server.log()


@pytest.mark.mosquitto
def test_a_detector_learns_readings_at_once_and_labels_by_their_id(
    make_server: Callable[..., Server], broker: int
) -> None:
    server = make_server(*options(broker)[:-1], "autodetector").start()
    server.wait_for_line("connected to the broker")

    async def main() -> None:
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            await client.subscribe("plant/+/prediction", qos=1)
            answers = _answers(client)
            for i in range(30):
                reading = {"load": float(i % 7), "heat": float(i % 3)} | ({"id": i} if i % 2 else {})
                await client.publish("plant/a/reading", orjson.dumps(reading), qos=1)
                assert "p_value" in await asyncio.wait_for(anext(answers), 10)
            for i in (1, 3, 5, 6):
                await client.publish("plant/a/label", orjson.dumps({"id": i, "y": i == 3}), qos=1)
            await client.publish("plant/a/reading", orjson.dumps({"load": 1.0}), qos=1)
            await asyncio.wait_for(anext(answers), 10)

    asyncio.run(main())
    with server.client() as client:
        shown = client.get("/models/mqtt").json()
        assert (shown["steps"], shown["waiting"], shown["seq"]) == (31, 12, 34)
    assert "no instance with the id '6' waits" in server.log().replace("id 6", "id '6'")


@pytest.mark.mosquitto
def test_what_came_while_the_server_was_away_is_learned(make_server: Callable[..., Server], broker: int) -> None:
    server = make_server(*options(broker)).start()
    server.wait_for_line("connected to the broker")
    server.kill()

    async def publish() -> None:
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            for i in range(20):
                await client.publish("plant/a/reading", orjson.dumps({"load": 1.0, "id": i}), qos=1)
                await client.publish("plant/a/label", orjson.dumps({"id": i, "y": "up"}), qos=1)

    asyncio.run(publish())
    server.start()
    with server.client() as client:
        end = time.monotonic() + 15
        while time.monotonic() < end and client.get("/models/mqtt").json()["steps"] < 20:
            time.sleep(0.05)
        assert client.get("/models/mqtt").json()["steps"] == 20


@pytest.mark.mosquitto
def test_a_broker_that_comes_later(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server(*options(9)).start()
    server.wait_for_line("trying again")
    with server.client() as client:
        assert client.get("/readyz").status_code == 200


async def _ask(port: int, given: int) -> dict[str, Any]:
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe("plant/+/prediction", qos=1)
        await client.publish("plant/a/reading", orjson.dumps({"load": 1.0, "id": given}), qos=1)
        return await asyncio.wait_for(anext(_answers(client)), 10)


@pytest.mark.mosquitto
def test_a_broker_that_is_started_again(make_server: Callable[..., Server], running: Broker) -> None:
    server = make_server(*options(running.port)).start()
    server.wait_for_line("connected to the broker")
    running.stop()
    server.wait_for_line("trying again")
    running.start()
    end = time.monotonic() + 15
    while time.monotonic() < end and server.log().count("connected to the broker") < 2:
        time.sleep(0.02)
    assert asyncio.run(_ask(running.port, 1))["id"] == 1


@pytest.mark.mosquitto
def test_a_model_that_is_deleted_and_made_again(make_server: Callable[..., Server], broker: int) -> None:
    server = make_server(*options(broker)).start()
    server.wait_for_line("connected to the broker")
    with server.client() as client:
        assert client.delete("/models/mqtt").status_code == 200
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(_ask(broker, 1), 1))
        server.wait_for_line("was rejected: there is no model 'mqtt'")
        assert client.put("/models/mqtt", json={"method": "arow", "key": "key"}).status_code == 201
    assert asyncio.run(_ask(broker, 2))["id"] == 2
    assert server.stop() == 0


def test_a_bridge_that_fails_ends_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(bridge: MqttBridge) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(MqttBridge, "run", fail)
    assert serve(Settings(tmp_path, port=0, topics=Topics("localhost:9", "plant/reading"))) == 1


def test_a_message_is_acknowledged_once_its_change_is_on_disk_but_not_by_a_stopped_model(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    client: Any = SimpleNamespace(_client=SimpleNamespace(ack=lambda number, qos: acknowledged.append(number)))

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        model = await models.create("mqtt", "arow", {})
        bridge = MqttBridge(models, Topics("localhost:1883", "plant/reading"))
        first, second, third = (aiomqtt.Message("plant/reading", b"{}", 1, False, i, None) for i in (1, 2, 3))
        done = asyncio.get_running_loop().create_future()
        finishing = asyncio.ensure_future(bridge._finish(client, first, done))
        await asyncio.sleep(0)
        assert acknowledged == []
        done.set_result({})
        await finishing
        assert acknowledged == [1]
        await bridge._finish(client, second, RejectedError("no reading"))
        model.stop_changes("the disk is full")
        await bridge._finish(client, third, StoppedError("the disk is full"))
        assert acknowledged == [1, 2]
        await models.stop()

    asyncio.run(main())


def test_topics() -> None:
    assert parts_of("plant/+/reading", "plant/a.b/reading") == {"key": "a.b"}
    assert parts_of("plant/reading", "plant/reading") == {}
    assert parts_of("{site}/{key}/x", "north/pump+7/x") == {"site": "north", "key": "pump+7"}
    assert parts_of("{site}/{key}/x", "north/x") == {}
    assert subscription("{site}/{key}/x") == "+/+/x"
    for wrong in ({"readings": "a/+/+"}, {"readings": "a/#"}, {"readings": "a", "predictions": "b/{key}"}):
        with pytest.raises(ParameterError):
            Topics("localhost:1883", **wrong)
    for topic in ("", "a/b+", "pump-{key}/up", "a/\0"):  # paho raises an error when it subscribes
        for wrong in ({"readings": topic}, {"readings": "a", "labels": topic}):
            with pytest.raises(ParameterError, match="no topic with"):
                Topics("localhost:1883", **wrong)
    for topic in ("", "out/#", "out/+", "out/\0", "out/{keys}"):  # paho raises an error at the first prediction
        with pytest.raises(ParameterError, match="--predictions"):
            Topics("localhost:1883", "plant/{key}/reading", predictions=topic)
    for port in ("x", "", "\u00b2", "-1", "0", "65536", "1_883", "123456"):
        with pytest.raises(ParameterError, match="HOST:PORT"):
            Topics(f"localhost:{port}", "a")


@pytest.mark.mosquitto
def test_no_message_ends_the_server(make_server: Callable[..., Server], broker: int) -> None:
    """NaN means "not observed"; what cannot be applied is rejected, logged and acknowledged."""
    server = make_server(*options(broker)).start()
    server.wait_for_line("connected to the broker")
    messages = [
        b'{"load": NaN, "id": 1}', b'{"load": 1.0, "x": NaN}', b'{"load": Infinity, "id": 2}', b"", b"\xff", b"[]",
        b"3",         b'{"id": {}}', b'{"id": NaN}', b'{"a": {"b": 1}}', b"[" * 50_000, b'{"a": ' + b"9" * 5_000 + b"}",
    ]  # fmt: skip

    async def main() -> list[dict[str, Any]]:
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            await client.subscribe("plant/+/prediction", qos=1)
            for kind in ("reading", "label"):
                for message in messages:
                    await client.publish(f"plant/a/{kind}", message, qos=1)
            await client.publish("plant/a/reading", b'{"load": 1.0, "id": "last"}', qos=1)
            found: list[dict[str, Any]] = []
            async for answer in _answers(client):
                found.append(answer)
                if answer["id"] == "last":
                    return found
            return found

    found = asyncio.run(asyncio.wait_for(main(), 20))
    assert found[0]["id"] == 1
    with server.client() as client:
        assert client.get("/readyz").status_code == 200
    assert "was rejected" in server.log()
    server.kill()
    server.start()
    server.wait_for_line("connected to the broker")
    assert asyncio.run(_ask(broker, 9))["id"] == 9
    assert server.stop() == 0


@pytest.mark.mosquitto
@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_payloads_are_mapped_by_the_rules_of_the_model(
    make_server: Callable[..., Server], broker: int, version: str
) -> None:
    """Nested payloads with a timestamp, the target in the reading, a part of the topic as a feature."""
    rules = {"target": "status", "id": "seq", "time": "ts", "ignore": ["tags"]}
    topics = ["--readings", "{site}/{key}/up", "--labels", "{site}/{key}/truth", "--predictions", "{site}/{key}/down"]
    more = ["--mqtt-input", orjson.dumps(rules).decode(), "--mqtt-version", version, "--mqtt-method", "arow"]
    server = make_server("--mqtt", f"127.0.0.1:{broker}", *topics, *more).start()
    server.wait_for_line("connected to the broker")

    async def main() -> list[dict[str, Any]]:
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            await client.subscribe("+/+/down", qos=1)
            answers = _answers(client)
            found = []
            for i in range(6):
                reading = {"seq": i, "ts": f"2026-03-04T10:00:0{i}Z", "tags": ["a"], "data": {"load": i % 2}}
                if i % 2:
                    reading["status"] = "up"
                await client.publish("north/pump/up", orjson.dumps(reading), qos=1)
                found.append(await asyncio.wait_for(anext(answers), 10))
            await client.publish("north/pump/truth", orjson.dumps({"seq": 0, "status": "down"}), qos=1)
            return found

    found = asyncio.run(main())
    assert {one["topic"] for one in found} == {"north/pump/down"}
    assert [one["seq"] for one in found] == [1, 2, 3, 4, 5, 6]
    with server.client() as client:
        for _ in range(100):
            if client.get("/models/mqtt").json()["steps"] == 4:
                break
            time.sleep(0.05)
        features = client.get("/models/mqtt/features", params={"key": "pump"}).json()["features"]
    assert set(features) == {"data.load", "site=north"}


@pytest.mark.mosquitto
def test_a_prediction_whose_topic_is_too_long_is_not_published(make_server: Callable[..., Server], broker: int) -> None:
    """The parts of a topic are taken as they are, also one that reads like the name of another."""
    topics = ["--readings", "{site}/{key}/up", "--predictions", "{site}{site}/{key}"]
    server = make_server("--mqtt", f"127.0.0.1:{broker}", *topics, "--mqtt-method", "arow").start()
    server.wait_for_line("connected to the broker")

    async def main() -> dict[str, Any]:
        async with aiomqtt.Client("127.0.0.1", broker) as client:
            await client.subscribe("{key}{key}/+", qos=1)
            for site in ("s" * 40_000, "{key}"):
                await client.publish(f"{site}/pump/up", b'{"load": 1.0}', qos=1)
            return await asyncio.wait_for(anext(_answers(client)), 10)

    assert asyncio.run(main())["topic"] == "{key}{key}/pump"
    server.wait_for_line("the topic of its prediction has more than 65,535 bytes")
    assert server.stop() == 0


@pytest.mark.mosquitto
def test_a_burst_is_learned_completely(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """A broker with the documented settings queues what the server has not yet acknowledged."""
    bursting = Broker(tmp_path, "allow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 256\n")
    broker = bursting.port
    server = make_server(*options(broker)).start()
    server.wait_for_line("connected to the broker")

    async def main() -> None:
        async with aiomqtt.Client("127.0.0.1", broker, max_inflight_messages=2_000) as client:
            client.pending_calls_threshold = 10_000
            for start in range(0, BURST, 500):
                payloads = (orjson.dumps({"load": 1.0, "id": i}) for i in range(start, start + 500))
                await asyncio.gather(*(client.publish("plant/a/reading", payload, qos=1) for payload in payloads))

    asyncio.run(main())
    with server.client() as client:
        for _ in range(600):
            if client.get("/models/mqtt").json()["waiting"] == BURST:
                break
            time.sleep(0.05)
        assert client.get("/models/mqtt").json()["waiting"] == BURST
    assert "pending publish calls" not in server.log()
    bursting.stop()


@pytest.mark.mosquitto
def test_a_broker_with_tls_and_a_password(make_server: Callable[..., Server], tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "localhost")
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "varifold", "secret"], check=True)
    passwords.chmod(0o644)
    key.chmod(0o644)
    tmp_path.chmod(0o755)
    secured = Broker(tmp_path, f"certfile {cert}\nkeyfile {key}\nallow_anonymous false\npassword_file {passwords}\n")
    (tmp_path / "login").write_text("varifold:secret\n")
    try:
        secure = ["--mqtt-ca", str(cert), "--mqtt-login", str(tmp_path / "login")]
        server = make_server(*options(secured.port), *secure).start()
        server.wait_for_line("connected to the broker")
    finally:
        secured.stop()
