"""Detectors on the server: score, learn, alarms, alerts, keys, recovery, the client and `follow --detect`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

import varifold
from tests.serve.following import stored
from tests.serve.server import Server, numbers
from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.client import RemoteDetector
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits


def reading(i: int) -> dict[str, float]:
    rng = random.Random(i)
    speed = rng.gauss(50.0, 10.0)
    x = {"speed": speed, "flow": 2.0 * speed + rng.gauss(0.0, 3.0), "heat": rng.gauss(20.0, 2.0)}
    return {name: round(value, 3) for name, value in x.items() if rng.random() < 0.9}


ODD = {"speed": 50.0, "flow": -300.0, "heat": 90.0}


@pytest.fixture
def detector(client: httpx.Client) -> str:
    """A new detector of the server that has learned."""
    name = f"m{next(numbers)}"
    assert client.put(f"/models/{name}", json={"method": "autodetector", "params": {"rate": 0.02}}).status_code == 201
    rows = b"\n".join(orjson.dumps({"x": reading(i)}) for i in range(400))
    client.post(f"/models/{name}/batch", content=rows).raise_for_status()
    return name


def test_score_p_value_and_alarm_are_those_of_the_library(client: httpx.Client, detector: str) -> None:
    local = varifold.AutoDetector(rate=0.02)
    local.learn_many([reading(i) for i in range(400)])
    found = client.post(f"/models/{detector}/predict", json={"x": ODD}).json()
    assert found["score"] == local.score_one(ODD)
    assert found["p_value"] == local.p_value_one(ODD)
    assert found["anomaly"] is True
    assert list(found["because"].items()) == list(local.explain_one(ODD).items())[:5]
    usual = client.post(f"/models/{detector}/predict", json={"x": {"speed": 50.0, "flow": 100.0}}).json()
    assert usual["anomaly"] is False
    assert "because" not in usual
    info = client.get(f"/models/{detector}").json()
    assert (info["task"], info["steps"], info["params"]["rate"]) == ("detection", 400, 0.02)


def test_learn_scores_first_and_an_id_is_learned_once(client: httpx.Client, detector: str) -> None:
    before = client.post(f"/models/{detector}/predict", json={"x": ODD}).json()
    body = {"x": ODD, "id": "r-1"}
    found = client.post(f"/models/{detector}/learn", json=body).json()
    assert (found["score"], found["seq"], found["id"]) == (before["score"], 401, "r-1")
    again = client.post(f"/models/{detector}/learn", json=body).json()
    assert again["duplicate"] is True
    assert client.get(f"/models/{detector}").json()["steps"] == 401
    explained = client.post(f"/models/{detector}/explain", json={}).json()
    assert explained["x"] == ODD
    assert sum(explained["contributions"].values()) == pytest.approx(explained["score"])


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("learn", {"x": {"a": 1.0}, "y": "odd"}, "true for an anomaly, or else false"),
        ("learn", {"x": {"a": 1.0}, "y": 2}, "true for an anomaly, or else false"),
        ("learn", {"x": {"a": 1.0}, "y": [True]}, "true for an anomaly, or else false"),
        ("learn", {"x": {"a": 1.0}, "w": 2.0}, "has no weights"),
        ("labels", {"id": "r-1", "y": "odd"}, "true for an anomaly, or else false"),
        ("predict", {"x": {"a": 1.0}, "keep": True}, "send it to learn"),
        ("explain", {"x": {"a": 1.0}, "label": "odd"}, "the model is a detector, which has no labels"),
    ],
)
def test_what_a_detector_has_no_use_for_is_rejected(
    client: httpx.Client, detector: str, path: str, body: dict[str, Any], message: str
) -> None:
    response = client.post(f"/models/{detector}/{path}", json=body)
    assert response.status_code == 422
    assert message in response.json()["error"]
    assert client.get(f"/models/{detector}").json()["steps"] == 400


def test_a_label_comes_with_its_instance_or_later(client: httpx.Client, detector: str) -> None:
    local = varifold.AutoDetector(rate=0.02)
    local.learn_many([reading(i) for i in range(400)])

    def same(seq: int) -> None:
        shown = client.get(f"/models/{detector}/digest").json()
        assert shown == {"seq": seq, "digest": hashlib.sha256(local.to_bytes()).hexdigest()}

    found = client.post(f"/models/{detector}/learn", json={"x": ODD, "y": True, "id": "first"}).json()
    assert (found["score"], found["id"], found["seq"]) == (local.score_one(ODD), "first", 401)
    local.learn_one(ODD)
    local.label_one(ODD, True)
    same(401)
    kept = client.post(f"/models/{detector}/learn", json={"x": reading(1), "keep": True, "id": 7}).json()
    unnamed = client.post(f"/models/{detector}/learn", json={"x": reading(2), "keep": True}).json()
    assert kept["id"] == 7
    assert unnamed["id"].startswith(f"{detector}.")
    assert client.get(f"/models/{detector}").json()["waiting"] == 2
    local.learn_many([reading(1), reading(2)])
    same(403)
    assert client.post(f"/models/{detector}/labels", json={"id": 7, "y": 0}).json() == {"seq": 404}
    assert client.post(f"/labels/{unnamed['id']}", json={"y": True}).json() == {"seq": 405}
    local.label_one(reading(1), False)
    local.label_one(reading(2), True)
    same(405)
    for id in (7, unnamed["id"]):
        again = client.post(f"/models/{detector}/labels", json={"id": id, "y": True})
        assert (again.status_code, again.json()["error"]) == (409, f"the instance {id!r} has its label already")
    assert client.post(f"/models/{detector}/labels", json={"id": "first", "y": True}).status_code == 409
    assert client.post(f"/models/{detector}/labels", json={"id": "none", "y": True}).status_code == 404
    assert client.get(f"/models/{detector}").json()["steps"] == 403


def test_a_batch_may_label_what_it_kept(client: httpx.Client, detector: str) -> None:
    rows = [{"x": ODD, "keep": True, "id": "a"}, {"id": "a", "y": True}, {"x": ODD, "id": "a", "y": True}]
    text = client.post(f"/models/{detector}/batch", content=b"\n".join(map(orjson.dumps, rows))).text
    kept, labelled, again = map(orjson.loads, text.splitlines())
    assert (kept["id"], kept["seq"], labelled) == ("a", 401, {"seq": 402})
    assert again["duplicate"] is True


def test_a_detector_that_learns_no_labels_says_so(client: httpx.Client) -> None:
    name = f"m{next(numbers)}"
    client.put(f"/models/{name}", json={"method": "taildetector"})
    for path, body in [
        ("learn", {"x": ODD, "y": True}),
        ("learn", {"x": ODD, "keep": True}),
        ("labels", {"id": "a", "y": True}),
    ]:
        response = client.post(f"/models/{name}/{path}", json=body)
        assert response.status_code == 422
        assert "learns no labels" in response.json()["error"]
    assert client.get(f"/models/{name}").json()["seq"] == 0


def test_a_vote_of_detectors_is_served_and_recovered(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    learners = ["copuladetector", {"method": "presencedetector", "params": {}}]
    local = varifold.VoteDetector([varifold.CopulaDetector(), varifold.PresenceDetector()], rate=0.02)
    with server.client() as client:
        body = {"method": "votedetector", "params": {"learners": learners, "rate": 0.02}}
        assert client.put("/models/m", json=body).status_code == 201
        for i in range(200):
            found = client.post("/models/m/learn", json={"x": reading(i)}).json()
            assert found["score"] == local.score_one(reading(i))
            local.learn_one(reading(i))
        shown = client.get("/models/m").json()
        assert (shown["method"], shown["task"], shown["steps"]) == ("votedetector", "detection", 200)
        assert shown["bytes"] > 10_000
        assert client.get("/models/m/report").status_code == 200
        assert client.post("/models/m/explain", json={"x": ODD}).json()["contributions"] == local.explain_one(ODD)
        before = client.get("/models/m/digest").json()
        assert before["digest"] == hashlib.sha256(local.to_bytes()).hexdigest()
    server.kill()
    with make_server().start().client() as client:
        assert client.get("/models/m/digest").json() == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"params": {}}, "the params of a votedetector are"),
        ({"params": {"learners": ["arow"]}}, "'arow', which is no detector"),
        ({"params": {"learners": [{"method": "loda", "seed": 1}]}}, "which is no detector"),
        ({"params": {"learners": [{"method": "loda", "params": {"sed": 1}}]}}, "loda has no parameter 'sed'"),
        ({"params": {"learners": ["loda"], "rate": 2}}, "rate"),
        ({"params": {"learners": ["loda"]}, "key": "device"}, "no learners by key"),
    ],
)
def test_votes_that_cannot_be_made(client: httpx.Client, body: dict[str, Any], message: str) -> None:
    response = client.put(f"/models/m{next(numbers)}", json={"method": "votedetector", **body})
    assert response.status_code == 422
    assert message in response.json()["error"]


def test_an_unknown_parameter_is_named(client: httpx.Client) -> None:
    body = {"method": "taildetector", "params": {"windw": 3}}
    response = client.put(f"/models/m{next(numbers)}", json=body)
    assert response.status_code == 422
    assert "did you mean window" in response.json()["error"]


def test_the_report_shows_the_share_of_alarms(client: httpx.Client, detector: str) -> None:
    found = client.get(f"/models/{detector}/report").json()
    assert found["task"] == "detection"
    assert found["error"]["scored"] == 400
    assert 0 < sum(share for _, share in found["error"]["curve"]) / len(found["error"]["curve"]) < 0.1


def test_a_killed_server_recovers_the_detector(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "autodetector", "key": "device"})
        rows = [{"x": reading(i), "key": f"d{i % 3}"} for i in range(600)]
        client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows))).raise_for_status()
        for i in range(20):
            body = {"x": reading(i), "key": f"d{i % 3}", "id": i, "keep": True}
            assert client.post("/models/m/learn", json=body).status_code == 200
        for i in range(15):
            label = client.post("/models/m/labels", json={"id": i, "key": f"d{i % 3}", "y": i % 2 == 0})
            assert label.status_code == 200
        before = client.get("/models/m/digest").json()
        devices = client.get("/models/m/devices").json()
        assert devices["counts"]["ok"] == 3
        assert {one["prediction"] for one in devices["devices"]} <= {"usual", "anomaly"}
    server.kill()
    with make_server().start().client() as client:
        assert client.get("/models/m/digest").json() == before
        assert client.get("/models/m").json()["waiting"] == 5
        assert client.post("/models/m/labels", json={"id": 1, "key": "d1", "y": True}).status_code == 409
        assert client.post("/models/m/labels", json={"id": 19, "key": "d1", "y": True}).json() == {"seq": 636}


def test_anomalies_of_a_minute_are_one_alert(tmp_path: Path) -> None:
    async def main() -> list[dict[str, Any]]:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        state = (await models.create("m", "autodetector", {}, "device")).state
        alerts = Alerts(models, AlertRules())
        for i in range(600):
            state.apply({"x": reading(i), "key": "a"}, b"{}")
        state.alarms.clear()
        for i in range(30):
            state.apply({"x": {**ODD, "heat": 90.0 + i}, "key": "a"}, b"{}")
            alerts.check()
        alerts._known["m"].alarm_at -= 61.0
        alerts.check()
        await models.stop()
        return [event for event in models.events.latest if event["kind"] == "anomaly"]

    first, rest = asyncio.run(main())
    assert first["text"].startswith("change 601 of a, p-value 0.00")
    assert "flow" in first["features"]
    assert (first["count"], first["keys"]) == (1, ["a"])
    assert rest["count"] >= 1
    assert f"{rest['count']} anomalies; most unusual: change" in rest["text"] or rest["count"] == 1


def test_the_client_is_a_detector(shared: Server) -> None:
    name = f"m{next(numbers)}"
    with RemoteDetector(shared.url, name, method="autodetector", params={"rate": 0.05}) as remote:
        local = varifold.AutoDetector(rate=0.05)
        rows = [reading(i) for i in range(300)]
        found = remote.detect_many(rows[:290])
        assert [one["score"] for one in found] == local.score_learn_many(rows[:290])
        for x in rows[290:]:
            remote.learn_one(x)
            local.learn_one(x)
        assert remote.steps == 300
        assert remote.score_one(ODD) == local.score_one(ODD)
        assert remote.p_value_one(ODD) == local.p_value_one(ODD)
        assert remote.is_anomaly_one(ODD)
        assert not remote.is_anomaly_one(ODD, rate=0.0)
        assert remote.explain_one(ODD) == local.explain_one(ODD)
        kept = remote.keep_one(ODD)
        local.learn_one(ODD)
        remote.label(kept["id"], True)
        local.label_one(ODD, True)
        assert remote.score_one(rows[0]) == local.score_one(rows[0])
        with pytest.raises(varifold.errors.DataError, match="has its label already"):
            remote.label(kept["id"], True)
    with pytest.raises(varifold.errors.ParameterError, match="not for detection"):
        RemoteDetector(shared.url, name, method="auto")


def follow(lines: list[bytes], *options: str) -> tuple[list[dict[str, Any]], str, int]:
    command = [sys.executable, "-m", "varifold", "follow", *options]
    done = subprocess.run(command, input=b"".join(lines), capture_output=True, env=os.environ, check=False)
    return [orjson.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(), done.returncode


def test_follow_detect_continues_from_its_state(tmp_path: Path) -> None:
    lines = [orjson.dumps({**reading(i), "ts": i, "id": f"r{i}"}) + b"\n" for i in range(300)]
    options = ["--detect", "--rate", "0.02", "--time", "ts", "--id", "id", "--state", str(tmp_path / "s")]
    first, said, _ = follow(lines[:200], *options)
    second, _, _ = follow([*lines[199:], orjson.dumps({**ODD, "id": "odd"}) + b"\n", b"{\n"], *options)
    local = varifold.AutoDetector(rate=0.02)
    expected = local.score_learn_many([reading(i) for i in range(300)])
    assert [one["score"] for one in first] == expected[:200]
    assert second[0]["duplicate"] is True
    assert [one["score"] for one in second[1:101]] == expected[200:]
    assert (second[101]["id"], second[101]["anomaly"]) == ("odd", True)
    assert "error" in second[102]
    assert "200 lines, 200 learned in all" in said
    state, _ = stored(tmp_path / "s", "follow")
    assert (state.learner.steps, state.learner.rate) == (301, 0.02)
    _, said, code = follow(lines[:1], "--target", "heat", "--state", str(tmp_path / "s"))
    assert code != 0
    assert "holds a detector; use --detect" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--detect", "--model", "arow"], "not a detector"),
        (["--detect", "--target-type", "number"], "--detect has no target"),
        (["--target", "y", "--rate", "0.1"], "--rate is the rate of alarms of --detect"),
        ([], "one of the arguments --target --detect is required"),
    ],
)
def test_follow_rejects_options_that_do_not_go_together(options: list[str], message: str) -> None:
    _, said, code = follow([], *options)
    assert code != 0
    assert message in said
