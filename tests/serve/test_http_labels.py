"""Ids and labels that come later, through the HTTP door of a real server process."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import orjson
import pytest
from websockets.sync.client import connect

from tests.serve.server import Server, instance, numbers, taught
from varifold.serve import bridge
from varifold.serve.client import RemoteClassifier
from varifold.serve.core.errors import RejectedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits


def test_an_id_is_learned_once(client: httpx.Client, model: str) -> None:
    body = {**instance(0), "id": "r1"}
    answers = [client.post(f"/models/{model}/learn", json=body).json() for _ in range(3)]
    assert answers == [{"seq": 1}, {"seq": 1, "duplicate": True}, {"seq": 1, "duplicate": True}]
    assert client.get(f"/models/{model}").json()["steps"] == 1


def test_a_label_comes_later(client: httpx.Client, model: str) -> None:
    taught(client, model, 4)
    given = client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}, "keep": True}).json()["id"]
    assert client.get(f"/models/{model}").json()["waiting"] == 1
    assert client.post(f"/labels/{given}", json={"y": None}).status_code == 422
    assert client.post(f"/labels/{given}", json={"y": "up"}).json() == {"seq": 6}
    assert client.post(f"/labels/{given}", json={"y": "up"}).status_code == 409
    shown = client.get(f"/models/{model}").json()
    assert (shown["waiting"], shown["steps"]) == (0, 5)


def test_labels_of_unknown_and_expired_instances(client: httpx.Client, model: str) -> None:
    ids = [
        client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}, "keep": True}).json()["id"] for _ in range(52)
    ]
    assert client.post(f"/labels/{ids[0]}", json={"y": "up"}).status_code == 410
    assert client.post(f"/labels/{ids[2]}", json={"y": "up"}).status_code == 200
    later = re.sub(r"\d+$", "999", ids[0])
    for unknown in (later, "nobody.abcdef.1", "nonsense", f"{model}.abcdef.x"):
        assert client.post(f"/labels/{unknown}", json={"y": "up"}).status_code == 404
    assert client.post(f"/labels/{model}.000000.1", json={"y": "up"}).status_code == 410


def test_the_clients_own_ids_of_kept_instances(client: httpx.Client, model: str) -> None:
    body = {"x": {"f0": 1.0}, "keep": True, "id": "reading 7"}
    first, again = (client.post(f"/models/{model}/predict", json=body).json() for _ in range(2))
    assert first["id"] == again["id"] == "reading 7"
    assert again["duplicate"]
    label = {"id": "reading 7", "y": "up"}
    assert client.post(f"/models/{model}/labels", json=label).status_code == 200
    assert client.post(f"/models/{model}/labels", json=label).status_code == 409
    assert client.post(f"/models/{model}/labels", json={"id": "reading 8", "y": "up"}).status_code == 404
    assert client.get(f"/models/{model}").json()["steps"] == 1


@pytest.mark.parametrize("given", ["mine-1", "pump-7/3", "a%41?b", 7])
def test_a_label_by_the_clients_own_id_alone(client: httpx.Client, model: str, given: str | int) -> None:
    given = f"{model}{given}" if isinstance(given, str) else next(numbers) + 1_000_000
    kept = client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}, "keep": True, "id": given}).json()
    assert kept["id"] == given
    route = f"/labels/{quote(str(given), safe='')}"
    assert client.post(route, json={"y": "up", "w": 2.0}).status_code == 200
    assert client.post(route, json={"y": "up"}).status_code == 409
    twin = f"{model}-twin"
    client.put(f"/models/{twin}", json={"method": "arow"})
    client.post(f"/models/{twin}/learn", json={"x": {"f0": 1.0}, "y": "up", "w": 2.0})
    digests = {client.get(f"/models/{name}/digest").json()["digest"] for name in (twin, model)}
    assert len(digests) == 1


def test_an_id_that_two_models_have(client: httpx.Client, model: str) -> None:
    other = f"{model}-b"
    client.put(f"/models/{other}", json={"method": "arow"})
    for name in (model, other):
        client.post(f"/models/{name}/predict", json={"x": {"f0": 1.0}, "keep": True, "id": f"{model}-1"})
    found = client.post(f"/labels/{model}-1", json={"y": "up"})
    assert found.status_code == 409
    assert f"/models/{model}/labels" in found.json()["error"]
    assert [client.get(f"/models/{name}").json()["steps"] for name in (model, other)] == [0, 0]


@pytest.mark.parametrize("route", ["/labels/{id}", "/models/{model}/labels"])
@pytest.mark.parametrize(
    ("more", "text"), [({"weight": 2}, "did you mean w?"), ({"w": -1}, "weight is a number"), ({"x": {}}, "a label is")]
)
def test_labels_with_other_fields_are_refused(
    client: httpx.Client, model: str, route: str, more: dict[str, object], text: str
) -> None:
    kept = client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}, "keep": True}).json()["id"]
    body = {"y": "up", **more} if route.startswith("/labels") else {"id": kept, "y": "up", **more}
    found = client.post(route.format(id=kept, model=model), json=body)
    assert found.status_code == 422
    assert text in found.json()["error"]
    assert client.get(f"/models/{model}").json()["waiting"] == 1


def test_labels_that_json_names_alike(client: httpx.Client, model: str) -> None:
    for i, label in enumerate([1, "1", 2.5] * 4):
        client.post(f"/models/{model}/learn", json={"x": {"f0": float(i % 3)}, "y": label})
    found = client.post(f"/models/{model}/predict", json={"x": {"f0": 1.0}}).json()
    pairs = found["probabilities"]
    assert [label for label, _ in pairs] == [1, "1", 2.5]
    assert sum(p for _, p in pairs) == pytest.approx(1.0)
    with RemoteClassifier(str(client.base_url), model) as remote:
        assert remote.predict_proba_one({"f0": 1.0}) == dict(pairs)


def test_a_label_after_the_time_limit_is_refused_and_takes_no_number(make_server: Callable[..., Server]) -> None:
    server = make_server("--max-wait", "0.00003").start()  # hours: about 0.1 s
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        kept = client.post("/models/m/predict", json={"x": {"a": 1.0}, "keep": True}).json()
        time.sleep(0.2)
        late = client.post(f"/labels/{kept['id']}", json={"y": "up"})
        assert (late.status_code, "waits no longer" in late.json()["error"]) == (410, True)
        assert client.get("/models/m").json()["seq"] == kept["seq"]


def test_ids_of_two_devices_are_told_apart(client: httpx.Client) -> None:
    """Both count 1, 2, 3: each reading waits for its own label, and a label without its key is rejected."""
    name = f"m{next(numbers)}"
    client.put(f"/models/{name}", json={"method": "arow", "key": "device"})
    for key, value in (("a", 1.0), ("b", -1.0)):
        body = {"x": {"f": value}, "key": key, "keep": True, "id": 1}
        assert "duplicate" not in client.post(f"/models/{name}/predict", json=body).json()
    assert client.get(f"/models/{name}").json()["waiting"] == 2
    for route, more in ((f"/models/{name}/labels", {"id": 1}), ("/labels/1", {})):
        unclear = client.post(route, json={"y": "up", **more})
        assert (unclear.status_code, 'send the "key"' in unclear.json()["error"]) == (409, True)
    assert client.post("/labels/1", json={"y": "up", "key": "a"}).status_code == 200
    rows = [{"id": 1, "key": "b", "y": "down"}, {"id": 1, "key": "b", "y": "down"}]
    found = client.post(f"/models/{name}/batch", content=b"\n".join(map(orjson.dumps, rows))).text.splitlines()
    assert [orjson.loads(line).get("status") for line in found] == [None, 409]
    labels = [client.post(f"/models/{name}/predict", json={"x": {"f": 1.0}, "key": key}).json() for key in "ab"]
    assert [answer["label"] for answer in labels] == ["up", "down"]


ABSENT = ["", "NaN", "null"]


@pytest.mark.parametrize("y", ABSENT)
def test_a_text_that_means_absence_is_no_label(y: str, shared: Server, client: httpx.Client, model: str) -> None:
    """It has the effect, or the error, that null has in its place."""
    path, row = f"/models/{model}", {"x": {"v": 1.5}}
    with connect(f"{shared.url.replace('http', 'ws')}{path}/stream") as stream:
        for label in (None, y):
            assert client.post(f"{path}/learn", json={**row, "y": label}).status_code == 200
            assert "error" not in client.post(f"{path}/batch", json={**row, "y": label}).json()
            stream.send(orjson.dumps({**row, "y": label}).decode())
            assert "error" not in orjson.loads(stream.recv())
    assert client.get(path).json()["labels"] == []
    kept = client.post(f"{path}/predict", json={**row, "keep": True, "y": y, "id": y or "empty"}).json()["id"]
    for route, body in [(f"/labels/{kept}", {}), (f"{path}/labels", {"id": kept}), (f"{path}/batch", {"id": kept})]:
        found = [client.post(route, json={**body, "y": label}).text for label in (None, y)]
        assert found[0] == found[1]
        assert "y is missing or null" in found[1]
    assert client.get(path).json()["waiting"] == 1


@pytest.mark.parametrize("y", ABSENT)
def test_a_message_whose_label_means_absence_has_none(y: str, tmp_path: Path) -> None:
    async def run() -> None:
        models = Models(tmp_path, Policy(), Limits(), pytest.fail)
        models.open()
        for name, rules in [("plain", {}), ("named", {"target": "state", "id": "n"})]:
            model = await models.create(name, "arow", {}, None, InputRules(**rules))
            body = {rules.get("id", "id"): 1, rules.get("target", "y"): y}
            with pytest.raises(RejectedError, match="y is missing or null"):
                bridge.label(model, orjson.dumps(body), None)
            assert "y" not in bridge.reading(model, orjson.dumps({**body, "v": 1}), None)
        await models.stop()

    asyncio.run(run())


def test_none_and_na_may_be_labels(client: httpx.Client, model: str) -> None:
    for y in ("None", "NA", "?"):
        assert client.post(f"/models/{model}/learn", json={"x": {"v": 1.5}, "y": y}).status_code == 200
    assert client.get(f"/models/{model}").json()["labels"] == ["None", "NA", "?"]
