"""Devices: presence, silence, error and label delay by key, alerts that belong together, the routes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.serve.server import Server, instance, numbers
from varifold import AROW, PerKey
from varifold.serve.alerts import AlertRules, Alerts, grouped
from varifold.serve.core import devices as module
from varifold.serve.core.devices import MOST, MOST_SENSORS, Devices, Transition
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits, ModelState

X = {"load": 1.0, "heat": 2.0}


def kinds(transitions: list[Transition]) -> list[tuple[str, Any, str]]:
    return [(one.kind, one.key, one.detail) for one in transitions]


def run(devices: Devices, seconds: range, keys: range, x: dict[str, float] = X) -> list[tuple[str, Any, str]]:
    """Let devices send once a second, in milliseconds."""
    found = []
    for second in seconds:
        for key in keys:
            devices.observe(key, x, 1_000 * second)
        found += kinds(devices.check(1_000 * second))
    return found


def test_a_device_falls_silent_and_comes_back_once() -> None:
    devices = Devices()
    assert run(devices, range(30), range(60)) == []
    assert run(devices, range(30, 40), range(59)) == []
    assert run(devices, range(40, 90), range(59)) == [("device-silent", 59, "")]
    assert devices.counts() == {"silent": 1, "error": 0, "sensor": 0, "ok": 59}
    assert devices.worst(3)[0]["key"] == 59
    assert run(devices, range(90, 120), range(60)) == [("device-back", 59, "")]


@pytest.mark.parametrize("max_keys", [5, None])
def test_a_device_whose_learner_is_kept_is_not_dropped_for_strangers(
    max_keys: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers are predicted, and not learned."""
    monkeypatch.setattr(module, "MOST", 5)
    state = ModelState("m", PerKey(AROW(), key="k", max_keys=max_keys), Limits())

    def send(second: int, key: str, **more: str) -> None:
        state.tick(1_000 * second)
        state.apply({"x": X, "key": key, **more}, b"")

    clock = iter(range(0, 1_000_000, 1_000))
    monkeypatch.setattr("varifold.serve.core.state.time.time", lambda: next(clock) / 1_000)
    for second in range(40):
        send(second, "pump", y="up")
    for i in range(20):
        send(40 + i, f"stranger {i}")
    assert [one["key"] for one in state.devices.worst(9) if one["key"] == "pump"] == ["pump"]
    assert len(state.devices) == 5
    assert kinds(state.devices.check(10_000_000)) == [("device-silent", "pump", "")]
    for i in range(5):
        send(60 + i, f"new {i}", y="up")  # with the bound, the learner of the pump is forgotten
    assert {one["key"] for one in state.devices.worst(9)} == {f"new {i}" for i in range(5)}


def test_a_sensor_of_one_device_falls_silent() -> None:
    devices = Devices()
    run(devices, range(30), range(60))
    found = []
    for second in range(30, 60):
        for key in range(60):
            devices.observe(key, {"load": 1.0} if key == 7 else X, 1_000 * second)
        found += kinds(devices.check(1_000 * second))
    assert found == [("sensor-silent", 7, "heat")]
    (first, *_) = devices.worst(2)
    assert (first["key"], first["status"], first["silent_sensors"]) == (7, "sensor", ["heat"])
    seven = devices.get(7)
    assert seven is not None
    assert {row["name"]: row["presence"] for row in devices.sensors(seven)} == {"heat": "silent", "load": "here"}
    assert run(devices, range(60, 80), range(60)) == [("sensor-back", 7, "heat")]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_errors_that_differ_by_chance_are_no_alert(share: float) -> None:
    """Sixty devices, half an hour with a reading every half a second; then one is wrong most of the time."""
    rng, devices = random.Random(1), Devices()
    for key in range(60):
        devices.observe(key, X, 0)
    for second in range(1_800):
        for key in range(60):
            for _ in range(2):
                devices.scored(key, float(rng.random() < share))
        if second % 5 == 0:
            devices.compare_errors(shares=True)
    assert devices.check(0) == []
    for _ in range(60):  # half a minute
        devices.scored(7, float(rng.random() < 0.8))
    assert [one[:2] for one in kinds(devices.check(0))] == [("device-error", 7)]


def test_devices_that_send_when_something_happens_are_not_silent_by_chance() -> None:
    """Sixty devices with pauses of five seconds on average, at random; five hours. Then all fall silent."""
    rng, devices = random.Random(2), Devices()
    sent = sorted((at, key) for key in range(60) for at in _arrivals(rng, 5_000.0, 18_000_000.0))
    found, checked = [], 0
    for at, key in sent:
        devices.observe(key, X, int(at))
        if at > checked + 1_000:
            checked = int(at)
            found += devices.check(checked)
    assert found == []
    silent = devices.check(18_000_000 + 200_000)
    assert {one.kind for one in silent} == {"device-silent"}
    assert len(silent) == 60


def _arrivals(rng: random.Random, mean: float, end: float) -> Iterator[float]:
    at = rng.expovariate(1.0 / mean)
    while at < end:
        yield at
        at += rng.expovariate(1.0 / mean)


def test_the_error_of_one_device_is_far_above_the_others() -> None:
    devices = Devices()
    run(devices, range(30), range(20))
    for i in range(60):
        for key in range(20):
            devices.labelled(key, 2_000, float((i + key) % 10 == 0))
    devices.compare_errors(shares=True)
    for i in range(60):
        for key in range(20):
            devices.labelled(key, 2_000, float(i % 2 == 0 if key == 3 else (i + key) % 10 == 0))
    assert kinds(devices.check(30_000))[0][:2] == ("device-error", 3)
    three = devices.get(3)
    assert three is not None
    assert (three.status, three.delay) == ("error", 2_000)
    for _ in range(60):
        devices.labelled(3, None, 0.0)
    assert kinds(devices.check(30_000))[0][:2] == ("device-error-normal", 3)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    devices = Devices()
    for i in range(1_000):
        devices.observe(f"d{i}", {f"f{k}": 1.0 for k in range(200)}, i)
    assert len(devices) == 100
    assert len(devices.get("d999").sensors) == MOST_SENSORS  # type: ignore[union-attr]
    for i in range(5_000):
        devices.observe("churn", {f"w{i}": 1.0}, i)
    assert len(devices.get("churn").sensors) <= MOST_SENSORS  # type: ignore[union-attr]
    assert MOST == 10_000


def test_they_are_stored() -> None:
    devices, again = Devices(), Devices()
    run(devices, range(30), range(5))
    devices.labelled(2, 500, 1.0)
    again.fill(orjson.loads(orjson.dumps(devices.dump())))
    assert again.dump() == devices.dump()
    assert kinds(again.check(10_000_000)) == [("device-silent", key, "") for key in range(5)]


def test_a_sensor_that_is_lost_around_a_restart_is_noticed() -> None:
    devices, again = Devices(), Devices()
    run(devices, range(30), range(5))
    for second in range(30, 35):
        devices.observe(3, {"load": 1.0}, 1_000 * second)
    again.fill(orjson.loads(orjson.dumps(devices.dump())))
    for second in range(35, 60):
        again.observe(3, {"load": 1.0}, 1_000 * second)
    assert kinds(again.check(60_000))[0] == ("sensor-silent", 3, "heat")
    third = Devices()
    third.fill(orjson.loads(orjson.dumps(again.dump())))
    assert list(third.get(3).silent_sensors) == ["heat"]  # type: ignore[union-attr]


def test_a_clock_that_is_set_back() -> None:
    devices, day = Devices(), 86_400
    run(devices, range(day, day + 300, 10), range(5))
    assert run(devices, range(0, 600, 10), range(4)) == [("device-silent", 4, "")]
    assert {key: round(devices.get(key).pause) for key in range(4)} == dict.fromkeys(range(4), 10_000)  # type: ignore[union-attr]


def test_what_belongs_together_is_one_alert() -> None:
    outage = [Transition("device-silent", f"p{i}") for i in range(57)]
    (alert,) = grouped(outage)
    assert alert[:2] == ("device-silent", "57 devices: fell silent: p0, p1, p2, p3, p4, p5, p6, p7 and 49 more")
    (alert,) = grouped([Transition("sensor-silent", "p7", name) for name in ("heat", "flow")])
    assert alert[1] == "p7: heat, flow: fell silent"
    (alert,) = grouped([Transition("sensor-silent", f"p{i}", "heat") for i in range(3)])
    assert alert[1] == "heat: fell silent in 3 devices: p0, p1, p2"
    (alert,) = grouped([Transition("device-error", "p7", "0.4")])
    assert alert[1] == "p7: the error is far above that of most others (0.4)"


def test_an_outage_is_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_700_000_000.0]
    monkeypatch.setattr("varifold.serve.core.state.time.time", lambda: clock[0])

    async def main() -> list[tuple[str, str]]:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        model = await models.create("m", "arow", {}, "device")
        alerts = Alerts(models, AlertRules())
        for second in range(60):
            clock[0] += 1.0
            for key in range(20):
                sending = second < 30 or key == 0
                if sending:
                    body = {"x": X, "y": "up", "key": f"p{key}"}
                    await model.submit(body, orjson.dumps(body))
            alerts.check()
        await models.stop()
        return [(event["kind"], event["text"]) for event in models.events.latest]

    found = asyncio.run(main())
    assert [kind for kind, _ in found] == ["device-silent"]
    assert found[0][1].startswith("19 devices: fell silent: p1, p2")


def test_the_routes_of_devices(client: httpx.Client) -> None:
    name = f"m{next(numbers)}"
    client.put(f"/models/{name}", json={"method": "arow", "key": "device"})
    rows = [{"x": X, "y": "up", "key": key, "predict": True} for key in ("pump-1", "pump-2", 3) for _ in range(12)]
    client.post(f"/models/{name}/batch", content=b"\n".join(map(orjson.dumps, rows)))
    listed = client.get(f"/models/{name}/devices").json()
    assert listed["counts"]["ok"] == 3
    assert [d["key"] for d in listed["devices"]] == [3, "pump-1", "pump-2"]
    found = client.get(f"/models/{name}/devices", params={"search": "PUMP", "limit": 1}).json()["devices"]
    assert [d["key"] for d in found] == ["pump-1"]
    assert client.get(f"/models/{name}/devices", params={"limit": "x"}).status_code == 422
    one = client.get(f"/models/{name}/report", params={"key": "pump-2"}).json()
    assert (one["key"], one["instances"], one["steps"], one["prediction"]) == ("pump-2", 12, 12, "up")
    assert {f["name"] for f in one["features"]} == set(X)
    assert client.get(f"/models/{name}/report", params={"key": "3"}).json()["key"] == 3
    assert client.get(f"/models/{name}/report", params={"key": "nobody"}).status_code == 404
    assert client.get(f"/models/{name}/features", params={"key": "3"}).json()["features"].keys() == set(X)
    assert client.get(f"/models/{name}/features", params={"key": "4"}).status_code == 404
    assert {f["name"] for f in client.get(f"/models/{name}/report").json()["features"]} == set(X), (
        "the key is no feature"
    )
    explained = client.post(f"/models/{name}/explain", json={"x": X, "key": "pump-1"}).json()
    assert set(X) <= set(explained["contributions"])
    assert f'varifold_devices{{model="{name}",status="ok"}} 3.0' in client.get("/metrics").text
    client.delete(f"/models/{name}")
    client.put(f"/models/{name}", json={"method": "arow", "key": "device"})
    client.post(f"/models/{name}/predict", json={"x": X, "key": "pump-1"})
    client.post(f"/models/{name}/restore", content=AROW().to_bytes())
    assert client.get(f"/models/{name}/report", params={"key": "pump-1"}).status_code == 404, "no learners by key now"
    client.delete(f"/models/{name}")
    client.put(f"/models/{name}", json={"method": "arow"})
    assert client.get(f"/models/{name}/devices").status_code == 422
    client.delete(f"/models/{name}")


def test_devices_survive_a_crash(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow", "key": "device"})
        for i in range(12):
            client.post("/models/m/learn", json={"x": X, "y": "up", "key": f"p{i % 2}"})
    server.kill()
    server.start()
    with server.client() as client:
        assert [d["instances"] for d in client.get("/models/m/devices").json()["devices"]] == [6, 6]
        kept = client.post("/models/m/predict", json={"x": X, "key": "p0", "keep": True}).json()["id"]
        time.sleep(0.05)
        client.post(f"/labels/{kept}", json={"y": "up"})
        assert client.get("/models/m/report", params={"key": "p0"}).json()["label_delay"] >= 50


def test_learners_of_keys_beyond_a_number_are_dropped_and_the_database_stays_small(
    make_server: Callable[..., Server],
) -> None:
    server = make_server("--snapshot-every", "100").start()
    with server.client() as client:
        for name, more in (("all", {}), ("few", {"max_keys": 10})):
            assert client.put(f"/models/{name}", json={"method": "arow", "key": "device", **more}).status_code == 201
            rows = [{**instance(i), "key": f"pump-{i // 4}"} for i in range(1_200)]
            client.post(f"/models/{name}/batch", content=b"\n".join(map(orjson.dumps, rows)))
        sizes = {name: len(client.get(f"/models/{name}/file").content) for name in ("all", "few")}
        assert sizes["few"] < sizes["all"] / 20
        before = client.get("/models/few/digest").json()
        for bad in ({"max_keys": 0, "key": "device"}, {"max_keys": 5}, {"max_keys": "5", "key": "device"}):
            found = client.put("/models/bad", json={"method": "arow", **bad})
            assert found.status_code == 422
            assert "it is a number from 1, of a model with a key" in found.json()["error"]
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/few/digest").json() == before
        assert client.get("/models/few/features?key=pump-0").status_code == 404
        assert client.post("/models/few/learn", json={**instance(1), "key": "pump-0"}).status_code == 200
    assert server.stop() == 0
