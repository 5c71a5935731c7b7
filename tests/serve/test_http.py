"""Every route and status of the HTTP door, against a real server process."""

from __future__ import annotations

import re
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import orjson
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import varifold
from tests.serve.server import Server, instance, numbers, taught
from varifold import AROW, Vote
from varifold.base import files
from varifold.serve.http import app, server_routes
from varifold.serve.server import Settings


def test_make_show_list_delete(client: httpx.Client) -> None:
    made = client.put("/models/plant", json={"method": "olvf", "params": {"C": 0.5}})
    assert (made.status_code, made.json()["method"]) == (201, "olvf")
    assert client.put("/models/plant").status_code == 409
    shown = client.get("/models/plant").json()
    assert (shown["params"]["C"], shown["steps"], shown["seq"]) == (0.5, 0, 0)
    assert len(client.get("/models/plant/digest").json()["digest"]) == 64
    assert "plant" in [m["name"] for m in client.get("/models").json()["models"]]
    assert client.delete("/models/plant").status_code == 200
    missing = client.get("/models/plant")
    assert missing.status_code == 404
    assert client.put("/models/plant").json()["method"] == "auto"
    client.delete("/models/plant")


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("ok", {"method": "nope"}, "no method 'nope'"),
        ("ok", {"method": "os:system"}, "no method"),
        ("ok", {"method": "arow", "params": {"rr": 1}}, "no parameter 'rr'"),
        ("ok", {"method": "arow", "params": {"r": -1}}, "'r' parameter of AROW"),
        ("ok", {"methods": "arow"}, "no field 'methods'"),
        ("ok", {"method": 5}, "a model is made of"),
        ("a.b", {}, "letters, digits"),
        ("x" * 65, {}, "letters, digits"),
        ("%2e%2e", {}, "letters, digits"),
    ],
)
def test_models_that_cannot_be_made(client: httpx.Client, name: str, body: dict[str, object], text: str) -> None:
    found = client.put(f"/models/{name}", json=body)
    assert found.status_code == 422
    assert text in found.json()["error"]


def test_learn_and_predict(client: httpx.Client, model: str) -> None:
    taught(client, model)
    found = client.post(f"/models/{model}/predict", json={"x": {"f0": 3.0, "f1": 3.0}}).json()
    assert found["label"] == "up"
    assert found["probabilities"]["up"] > 0.5
    assert found["seq"] == 40
    assert "id" not in found


def test_nan_is_absence(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    rows = [b'{"x": {"a": %s, "b": %d}, "y": "up"}' % (b"NaN" if i % 3 else b"null", i) for i in range(9)]
    with server.client() as client:
        for name in ("nan", "null"):
            client.put(f"/models/{name}", json={"method": "arow"})
            lines = [row if name == "nan" else row.replace(b"NaN", b"null") for row in rows]
            found = client.post(f"/models/{name}/batch", content=b"\n".join(lines)).text
            assert "error" not in found
            assert client.post(f"/models/{name}/learn", content=lines[1]).status_code == 200
            kept = client.post(f"/models/{name}/predict", content=lines[1][:-12] + b', "keep": true}').json()
            assert client.post(f"/labels/{kept['id']}", json={"y": "down"}).status_code == 200
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/nan").json()["steps"] == 11
        digests = {client.get(f"/models/{name}/digest").json()["digest"] for name in ("nan", "null")}
    assert len(digests) == 1


BAD = [
    (b"{", 400, "not JSON"),
    (b'{"x": {"a": 1e999}, "y": 1}', 422, "feature 'a' is inf"),
    (b'{"x": {"a": NaN, "b": 1e999}, "y": 1}', 422, "feature 'b' is inf"),
    (b'{"x": {"b": NaN, "a": -Infinity}, "y": 1}', 422, "feature 'a' is -inf"),
    (b'{"x": {"a": NaN, "b": "\\ud800"}, "y": 1}', 400, "surrogate"),
    (b'{"x": {"a": NaN}}', 422, "y is missing"),
    (b'{"x": {"a": NaN, "b": [1]}, "y": 1}', 422, "column 'b' holds a list"),
    (b'{"x": {"a": 1}, "y": 1, "weight": 2}', 422, "there is no field 'weight'; did you mean w?"),
    (b'"' + b"\xff\xfe" + b'"', 400, "not JSON"),
    (b"[" * 19_000, 400, "nested too deep"),
    (b"[]", 422, "array"),
    (b'{"y": 1}', 422, "x is missing"),
    (b'{"x": [1], "y": 1}', 422, "x is [1]"),
    (b'{"x": {"a": [1]}, "y": 1}', 422, "column 'a' holds a list"),
    (b'{"x": {"when": "2026-03-04 10:00"}, "y": 1}', 422, "column 'when' holds dates"),
    (b'{"x": {"a": 1}}', 422, "y is missing"),
    (b'{"x": {"a": 1}, "y": [1]}', 422, "y is [1]"),
    (b'{"x": {"a": 1}, "y": 1, "w": -1}', 422, "w is -1"),
    (b'{"x": {"a": 1}, "y": 1, "w": "1"}', 422, "w is '1'"),
    (b'{"x": {"a": 1}, "y": 1, "id": [1]}', 422, "id is [1]"),
    (b'{"x": {"a": 1}, "y": 1, "key": "k"}', 422, "no learners by key"),
    (b'{"x": {"a": 1}, "y": 1, "predict": 1}', 422, "predict is 1"),
    (b'{"x": {"v": "o", "v=o": 1}, "y": 1}', 422, "v=o"),
    (b'{"x": {"a": 1}, "y": 1%b}' % (b"0" * 400), 422, "y is inf"),
    (b'{"x": {"a": 1}, "y": "%b"}' % (b"z" * 1001), 422, "at most 1,000 characters"),
    (b'{"x": {"a": "' + b"z" * 30_000 + b'"}, "y": 1}', 413, "20,000"),
]


def shown(client: httpx.Client, model: str) -> dict[str, object]:
    """Everything that is shown of a model and its digest, but for memory, which a rejected change may reserve."""
    found = client.get(f"/models/{model}").json() | client.get(f"/models/{model}/digest").json()
    del found["bytes"]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(("body", "status", "text"), BAD)
def test_refused_bodies_change_nothing(client: httpx.Client, model: str, body: bytes, status: int, text: str) -> None:
    taught(client, model, 3)
    before = shown(client, model)
    found = client.post(f"/models/{model}/learn", content=body)
    assert (found.status_code, text in found.json()["error"]) == (status, True), found.text
    if text not in ("y is missing", "20,000"):  # a row without y is a prediction, and a batch may be longer
        assert orjson.loads(client.post(f"/models/{model}/batch", content=body).text)["status"] == status
    assert shown(client, model) == before


REFUSED_BY_THE_LEARNER = [
    ({"method": "arowregressor"}, {"x": {"a": 1.0}, "y": "dear"}, "finite numbers"),
    ({"method": "arowregressor"}, {"x": {"a": "b"}, "y": "dear", "id": "new"}, "finite numbers"),
    ({"method": "arowregressor"}, {"id": "kept", "y": "dear"}, "finite numbers"),
    ({"method": "arow", "key": "device"}, {"x": {"a": 1.0}, "y": "up"}, 'the request needs "key"'),
    ({"method": "arow", "key": "device"}, {"x": {"a": 1.0, "device": True}, "y": "up"}, "the key 'device' is True"),
    ({"method": "arow", "key": "device"}, {"x": {"a": 1.0, "device": 1e25}, "y": "up"}, "an int of 64 bits"),
    ({"method": "arow", "key": "device"}, {"x": {"a": 1.0, "device": "d" * 201}, "y": "up"}, "1 to 200 characters"),
    ({"method": "arow", "key": "device"}, {"x": {"a": 1.0}, "keep": True}, 'the request needs "key"'),
    ({"method": "arow", "key": "device"}, {"x": {"v": "o", "v=o": 1}, "y": 1, "key": "k"}, "v=o"),
    ({"method": "arow"}, {"x": {"a": 1.0}, "keep": True, "key": "k"}, "no learners by key"),
    ({"method": "arow"}, {"x": {"v": "o", "v=o": 1}, "keep": True}, "v=o"),
    ({"method": "arow"}, {"x": {"v=o": 1}, "y": "up"}, "v=o"),
]


def stored_changes(server: Server) -> int:
    """Count the rows of changes in the store of a server that runs."""
    db = sqlite3.connect(f"{(server.folder / 'state.db').as_uri()}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM changes").fetchone()[0])
    finally:
        db.close()


@pytest.mark.parametrize(("made", "body", "text"), REFUSED_BY_THE_LEARNER)
def test_what_the_learner_rejects_is_not_stored(
    shared: Server, client: httpx.Client, made: dict[str, str], body: dict[str, object], text: str
) -> None:
    """Neither sequence number nor digest change, whichever way it comes, and the store gets no row."""
    name = f"m{next(numbers)}"
    client.put(f"/models/{name}", json=made)
    first = {"x": {"a": 1.0, "v": "o"}, **({"key": "k"} if "key" in made else {})}
    client.post(f"/models/{name}/learn", json={**first, "y": 1.5})
    client.post(f"/models/{name}/predict", json={**first, "keep": True, "id": "kept"})
    before = shown(client, name)
    rows = stored_changes(shared)
    route = "labels" if "x" not in body else "predict" if "keep" in body else "learn"
    found = client.post(f"/models/{name}/{route}", json=body)
    assert (found.status_code, text in found.json()["error"]) == (422, True), found.text
    batched = orjson.loads(client.post(f"/models/{name}/batch", json=body).text)
    assert (batched["status"], batched["error"]) == (422, found.json()["error"])
    with connect(f"{shared.url.replace('http', 'ws')}/models/{name}/stream") as stream:
        stream.send(orjson.dumps(body).decode())
        assert orjson.loads(stream.recv()) == batched
    assert shown(client, name) == before
    assert stored_changes(shared) == rows
    client.delete(f"/models/{name}")


def test_a_body_in_pieces_is_bounded(client: httpx.Client, model: str) -> None:
    found = client.post(f"/models/{model}/learn", content=(b"x" * 5000 for _ in range(10)))
    assert found.status_code == 413


def test_paths_and_methods(client: httpx.Client) -> None:
    assert client.get("/nothing").status_code == 404
    assert client.get("/models/a/b/c").status_code == 404
    assert client.post("/models").status_code == 405
    assert client.get("/labels/x").status_code == 405
    assert client.post("/models/nobody/learn", json=instance(0)).status_code == 404


def test_batch(client: httpx.Client, model: str) -> None:
    kept = client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}, "keep": True}).json()["id"]
    rows = [
        *(instance(i) for i in range(50)),
        {**instance(50), "predict": True},
        {"x": {"f0": 2.0}},
        {"x": {"f0": 2.0}, "keep": True},
        {"id": kept, "y": "up"},
        {"id": kept, "y": "up"},
        {"x": [1]},
    ]
    content = b"\n".join(map(orjson.dumps, rows)) + b"\n{\n\n"
    found = client.post(f"/models/{model}/batch", content=content)
    answers = [orjson.loads(line) for line in found.text.splitlines()]
    assert [a["seq"] for a in answers[:51]] == list(range(2, 53))
    assert {"label", "probabilities", "seq"} <= answers[50].keys()
    assert "id" not in answers[51]
    assert answers[52]["id"].startswith(f"{model}.")
    assert answers[53] == {"seq": 54}
    assert [a.get("status") for a in answers[54:]] == [409, 422, 400]


def test_batch_and_single_requests_lead_to_the_same_state(client: httpx.Client, model: str) -> None:
    taught(client, model, 40)
    client.put("/models/batched", json={"method": "arow"})
    client.post("/models/batched/batch", content=b"\n".join(orjson.dumps(instance(i)) for i in range(40)))
    digests = {client.get(f"/models/{name}/digest").json()["digest"] for name in (model, "batched")}
    assert len(digests) == 1
    client.delete("/models/batched")


def test_stream_answers_in_order(shared: Server, client: httpx.Client, model: str) -> None:
    with connect(f"{shared.url.replace('http', 'ws')}/models/{model}/stream") as stream:
        for i in range(200):
            stream.send(orjson.dumps(instance(i) if i % 3 else {"x": instance(i)["x"]}).decode())
        stream.send("{")
        stream.send('{"x": {"f0": 1.0}, "keep": true}')
        answers = [orjson.loads(stream.recv()) for _ in range(202)]
    assert ["label" in a for a in answers[:200]] == [i % 3 == 0 for i in range(200)]
    learned = [a["seq"] for i, a in enumerate(answers[:200]) if i % 3]
    assert learned == list(range(1, len(learned) + 1))
    assert answers[200]["status"] == 400
    assert "id" in answers[201]
    assert client.get(f"/models/{model}").json()["steps"] == len(learned)


def test_a_stream_of_no_model_is_refused(shared: Server) -> None:
    with pytest.raises(InvalidStatus, match=r"403|1008"):
        connect(f"{shared.url.replace('http', 'ws')}/models/nobody/stream")


def test_a_regressor_serves_as_a_classifier_does(client: httpx.Client) -> None:
    client.put("/models/price", json={"method": "arowregressor"})
    for i in range(60):
        sent = {"x": {"size": i % 7, "rooms": i % 3}, "y": 100.0 + 10.0 * (i % 7)}
        assert client.post("/models/price/learn", json=sent).status_code == 200
    found = client.post("/models/price/predict", json={"x": {"size": 6, "rooms": 1}}).json()
    assert abs(found["label"] - 160.0) < 10.0
    kept = client.post("/models/price/predict", json={"x": {"size": 2}, "keep": True}).json()
    assert client.post(f"/labels/{kept['id']}", json={"y": 120.0}).status_code == 200
    explained = client.post("/models/price/explain", json={"x": {"size": 6, "rooms": 1}}).json()
    assert sum(explained["contributions"].values()) == pytest.approx(explained["label"])
    assert client.post("/models/price/explain", json={"x": {"size": 6}, "label": "high"}).status_code == 422
    assert client.post("/models/price/learn", json={"x": {"size": 6}, "y": "high"}).status_code == 422
    shown = client.get("/models/price").json()
    assert (shown["task"], shown["labels"], shown["steps"]) == ("regression", [], 61)
    assert client.get("/models/price/report").json()["error"]["scored"] > 0
    client.delete("/models/price")


def test_looking_inside(client: httpx.Client, model: str) -> None:
    assert client.post(f"/models/{model}/explain").status_code == 404
    taught(client, model)
    client.post(f"/models/{model}/predict", json={"x": {"f0": 3.0, "f1": -1.0}})
    last = client.post(f"/models/{model}/explain").json()
    assert last["x"] == {"f0": 3.0, "f1": -1.0}
    assert {"f0", "f1"} <= last["contributions"].keys()
    other = client.post(f"/models/{model}/explain", json={"x": {"f0": 3.0}, "label": "nope"})
    assert other.status_code == 422
    features = client.get(f"/models/{model}/features").json()["features"]
    assert features["f0"]["count"] > 10
    report = client.get(f"/models/{model}/report").json()
    assert report["instances"] == 41
    assert {row["name"]: row["presence"] for row in report["features"]}["f0"] == "here"
    assert report["error"]["scored"] == 5


def test_file_and_restore(client: httpx.Client, model: str, tmp_path: Path) -> None:
    taught(client, model)
    digest = client.get(f"/models/{model}/digest").json()["digest"]
    path = tmp_path / "model"
    path.write_bytes(client.get(f"/models/{model}/file").content)
    assert varifold.load(path).steps == 40
    client.put("/models/copy", json={"method": "olvf"})
    assert client.post("/models/copy/restore", content=path.read_bytes()).status_code == 200
    assert client.get("/models/copy/digest").json()["digest"] == digest
    made = client.post("/models/new/restore", content=path.read_bytes())
    assert (made.status_code, made.json()) == (201, {"seq": 0, "steps": 40, "input": {}})
    assert client.get("/models/new/digest").json()["digest"] == digest
    client.delete("/models/new")
    assert client.post("/models/n%20w/restore", content=path.read_bytes()).status_code == 422
    assert client.post("/models/new/restore", content=b"{}").status_code == 422
    assert client.get("/models/new").status_code == 404
    damaged = client.post("/models/copy/restore", content=path.read_bytes()[:-7])
    assert damaged.status_code == 422
    assert re.search("damaged|truncated", damaged.json()["error"])
    client.delete("/models/copy")


def test_health_metrics_and_description(client: httpx.Client, model: str) -> None:
    taught(client, model, 3)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    metrics = client.get("/metrics").text
    assert f'varifold_model_steps{{model="{model}"}} 3.0' in metrics
    assert re.search(r'varifold_requests_total\{route="learn",status="200"\} [1-9]', metrics)
    assert "varifold_request_seconds_bucket" in metrics


def test_every_route_is_described(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    found = {(method.upper(), path) for path, operations in described.items() for method in operations}
    parts_of_the_page = set(server_routes.PAGE) - {""}
    routes = {(method, f"/{name}") for method, name in app._TOP if name not in parts_of_the_page}
    routes |= {(method, f"/models/{{model}}/{name}".rstrip("/")) for method, name in app._MODEL}
    routes |= {(method, "/labels/{id}") for method, _ in app._LABEL}
    assert found == routes | {("GET", "/models/{model}/stream")}
    text = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    assert not [path for _, path in found if path.replace("{model}", "plant").partition("{")[0] not in text]


def test_other_sites_and_names_are_kept_out(client: httpx.Client) -> None:
    """Without a token only this machine may ask: not a page of another site, nor a name that leads here."""
    assert client.get("/models", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/models", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/models", headers={"origin": str(client.base_url).rstrip("/")}).status_code == 200


def test_what_is_no_path_is_not_found(shared: Server) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 404"


def test_the_dashboard_may_not_be_framed(client: httpx.Client) -> None:
    headers = client.get("/").headers
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost.example", False),
     ("127.example", False), ("0.0.0.0", False), ("::1.example", False)],
)  # fmt: skip
def test_which_hosts_are_local(host: str, local: bool) -> None:
    assert Settings(Path(), host=host).local is local


def test_a_restored_vote_has_no_explanations_and_no_method_that_is_no_text(client: httpx.Client, model: str) -> None:
    learner = AROW()
    learner.learn_one({"a": 1.0}, "up")
    header, arrays = learner._content()
    crafted = client.post(f"/models/{model}/restore", content=files.encode({**header, "method": {}}, arrays))
    assert (crafted.status_code, "which method" in crafted.json()["error"]) == (422, True)
    assert client.post(f"/models/{model}/restore", content=Vote([learner, AROW()]).to_bytes()).status_code == 200
    explained = client.post(f"/models/{model}/explain", json={"x": {"a": 1.0}})
    assert (explained.status_code, "Vote has no explanations" in explained.json()["error"]) == (422, True)
    assert client.get(f"/models/{model}/features").status_code == 200
    assert client.get(f"/models/{model}").json()["method"] == "vote"


def test_a_restored_label_that_no_response_can_hold_is_rejected(client: httpx.Client, model: str) -> None:
    for label, status in (("\ud800", 422), (10**40, 200), (b"\xff", 200)):
        learner = AROW()
        learner.learn_one({"a": 1.0, "\udfff": 2.0}, label)
        assert client.post(f"/models/{model}/restore", content=learner.to_bytes()).status_code == status, label
        assert client.get(f"/models/{model}/features").status_code == 200
        assert client.get(f"/models/{model}").json()["labels"] == ([] if status == 422 else [str(label)])
        assert client.post(f"/models/{model}/predict", json={"x": {"a": 1.0}, "keep": True}).status_code == 200
    assert client.get("/readyz").status_code == 200


def test_tokens(make_server: Callable[..., Server], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    lines = ["read readreadreadread # the dashboard", "write writewritewritewrite", "write somesomesomesome models=m"]
    tokens.write_text("\n".join(lines) + "\n")
    server = make_server("--token-file", str(tokens)).start()
    with server.client() as client:
        some = {"authorization": "Bearer somesomesomesome"}
        assert client.post("/models/other/restore", headers=some, content=AROW().to_bytes()).status_code == 403
        for header, read, write in (
            (None, 401, 401),
            ("Bearer wrongwrongwrongwrong", 401, 401),
            ("Basic writewritewritewrite", 401, 401),
            ("Bearer readreadreadread", 200, 403),
            ("Bearer writewritewritewrite", 200, 201),
        ):
            headers = {} if header is None else {"authorization": header}
            assert client.get("/models", headers=headers).status_code == read
            assert client.put("/models/m", headers=headers, json={"method": "arow"}).status_code == write
            restored = client.post("/models/new/restore", headers=headers, content=AROW().to_bytes())
            assert restored.status_code == write
        assert "a token is needed" in client.get("/models").json()["error"]
        wrong = client.get("/models", headers={"authorization": "Bearer wrongwrongwrongwrong"})
        assert "does not know this token" in wrong.json()["error"]
        reader = {"authorization": "Bearer readreadreadread"}
        assert client.post("/models/m/predict", headers=reader, json={"x": {}}).status_code == 200
        assert client.post("/models/m/predict", headers=reader, json={"x": {}, "keep": True}).status_code == 403
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 200
    with pytest.raises(InvalidStatus, match=r"403"):
        connect(f"{server.url.replace('http', 'ws')}/models/m/stream")


def test_events_are_streamed(client: httpx.Client, model: str) -> None:
    for i in range(150):
        x = {"a": 1.0, "b": float(i)} if i < 100 else {"a": 1.0}
        client.post(f"/models/{model}/learn", json={"x": x, "y": "up"})
    with client.stream("GET", "/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                event = orjson.loads(line[5:])
                if event["model"] == model:
                    break
    assert (event["kind"], event["features"]) == ("feature-silent", ["b"])


def test_models_by_key(client: httpx.Client) -> None:
    client.put("/models/devices", json={"method": "arow", "key": "device"})
    for _ in range(10):
        for key, label in (("a", "up"), ("b", "down")):
            body = {"x": {"f": 1.0}, "y": label, "key": key}
            assert client.post("/models/devices/learn", json=body).status_code == 200
    for key, label in (("a", "up"), ("b", "down"), ("c", None)):
        found = client.post("/models/devices/predict", json={"x": {"f": 1.0}, "key": key}).json()
        assert found["label"] == label
    in_x = client.post("/models/devices/predict", json={"x": {"f": 1.0, "device": "b"}}).json()
    assert in_x["label"] == "down"
    assert client.post("/models/devices/predict", json={"x": {"f": 1.0}}).status_code == 422
    assert client.get("/models/devices/features?key=a").json()["features"]["f"]["count"] == 10
    assert client.get("/models/devices/features?key=z").status_code == 404
    shown = client.get("/models/devices").json()
    assert (shown["key"], shown["steps"]) == ("device", 20)
    client.delete("/models/devices")
