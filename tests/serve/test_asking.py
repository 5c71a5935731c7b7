"""Labels that a model requests: decisions, the list, a person who labels in a browser, and recovery."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.serve.conftest import browser
from tests.serve.following import follow, outputs, stored
from tests.serve.server import Server, instance, taught
from tests.serve.test_core import abandon, fingerprint, send_rows
from varifold import AROW
from varifold.ask import AskPolicy
from varifold.errors import DataError, ParameterError
from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.client import AsyncRemoteModel, RemoteClassifier
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits, ModelState, _interleaved
from varifold.serve.follow import Follower

ASK = {"budget": 0.1, "seed": 3}


def keep(client: httpx.Client, model: str, first: int, last: int) -> list[dict[str, Any]]:
    rows = [orjson.dumps({"x": instance(i)["x"], "keep": True, "id": f"r{i}"}) for i in range(first, last)]
    found = client.post(f"/models/{model}/batch", content=b"\n".join(rows))
    return [orjson.loads(line) for line in found.text.splitlines()]


def listed(client: httpx.Client, model: str, most: int = 20) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/models/{model}/ask", params={"most": most}).raise_for_status().json()
    return found


@pytest.fixture
def asking(make_server: Callable[..., Server]) -> Iterator[tuple[Server, httpx.Client]]:
    server = make_server().start()
    with server.client() as client:
        assert client.put("/models/m", json={"method": "arow", "ask": ASK}).status_code == 201
        taught(client, "m")
        yield server, client


def test_the_list_has_the_key_wherever_it_came(asking: tuple[Server, httpx.Client]) -> None:
    """So name and key of the list are those that a label needs."""
    _, client = asking
    client.put("/models/pumps", json={"method": "arow", "key": "pump", "ask": {"budget": 1.0}})
    for body in ({"x": {"pump": "p1", "v": 1}}, {"x": {"v": 2}, "key": "p2"}, {"x": {"pump": 3.0, "v": 3}}):
        client.post("/models/pumps/predict", json={**body, "id": 1, "keep": True}).raise_for_status()
    rows = listed(client, "pumps")["instances"]
    assert {row["key"] for row in rows} == {"p1", "p2", 3}
    for row in rows:
        body = {"id": row["name"], "key": row["key"], "y": "up"}
        assert client.post("/models/pumps/labels", json=body).status_code == 200


def test_predictions_say_whether_their_label_is_worth_it(asking: tuple[Server, httpx.Client]) -> None:
    _, client = asking
    results = keep(client, "m", 1000, 3000)
    policy, learner = AskPolicy(**ASK), AROW()
    for i in range(40):
        learner.learn_one(instance(i)["x"], instance(i)["y"])
    expected = [
        policy.decide(x, learner.predict_proba_one(x)).ask for x in (instance(i)["x"] for i in range(1000, 3000))
    ]
    assert [one["ask"] for one in results] == expected
    assert abs(sum(expected) - 200) <= 20
    assert "ask" not in client.post("/models/m/predict", json={"x": {"f0": 1.0}}).json()
    found = listed(client, "m", 100)
    assert (found["budget"], found["decided"], found["requested"]) == (0.1, 2000, sum(expected))
    assert (len(found["instances"]), set(found["labels"])) == (100, {"up", "down"})
    requested = {f"r{i}" for i, ask in zip(range(1000, 3000), expected, strict=True) if ask}
    assert {one["name"] for one in found["instances"]} <= requested
    by_worth = [one["worth"] for one in found["instances"] if not one["drawn"]]
    assert by_worth == sorted(by_worth, reverse=True)
    places = [place for place, one in enumerate(found["instances"]) if one["drawn"]]
    assert places[:4] == [1, 6, 11, 16]  # a fifth of the budget is drawn at random
    drawn = [one["name"] for one in found["instances"] if one["drawn"]]
    assert drawn == sorted(drawn, key=lambda name: int(name[1:]))
    assert client.get("/models/m").json()["ask"]["budget"] == 0.1


def test_labels_from_the_list_are_learned_and_leave_it(asking: tuple[Server, httpx.Client]) -> None:
    _, client = asking
    keep(client, "m", 1000, 3000)
    for one in listed(client, "m", 10)["instances"]:
        number = int(one["name"][1:])
        assert client.post(f"/labels/{one['id']}", json={"y": instance(number)["y"]}).status_code == 200
        assert client.post(f"/labels/{one['name']}", json={"y": "up"}).status_code == 409
        assert one["name"] not in {other["name"] for other in listed(client, "m", 100)["instances"]}
    assert client.get("/models/m").json()["steps"] == 50
    found = listed(client, "m")
    assert found["estimate"]["labels"] == 2  # two of ten were drawn at random
    assert "estimated from 2 requested labels" in found["text"]
    assert client.get("/models/m/report").json()["ask"]["estimate"] == found["estimate"]
    assert client.get("/models/m/report").json()["error"]["scored"] == 5 + 2  # every 8th of 40, and those two
    metrics = client.get("/metrics").text
    assert f'varifold_model_requested{{model="m"}} {found["requested"]}.0' in metrics
    assert f'varifold_model_error_estimated{{model="m"}} {found["estimate"]["error"]}' in metrics


def test_after_a_kill_list_and_budget_are_as_before(asking: tuple[Server, httpx.Client]) -> None:
    server, client = asking
    keep(client, "m", 1000, 1700)
    for one in listed(client, "m", 12)["instances"]:
        client.post(f"/labels/{one['id']}", json={"y": instance(int(one["name"][1:]))["y"]})
    before = listed(client, "m", 100)
    server.kill()
    server.start()
    with server.client() as again:
        assert listed(again, "m", 100) == before
        asked = [one["ask"] for one in keep(again, "m", 1700, 2400)]
    with server.client() as other:
        other.put("/models/n", json={"method": "arow", "ask": ASK})
        taught(other, "n")
        keep(other, "n", 1000, 1700)
        for one in listed(other, "n", 12)["instances"]:
            other.post("/models/n/labels", json={"id": one["name"], "y": instance(int(one["name"][1:]))["y"]})
        assert [one["ask"] for one in keep(other, "n", 1700, 2400)] == asked


@pytest.mark.parametrize("snapshot_every", [100_000, 700])
@pytest.mark.parametrize("by", ["mixed", "variable", "paa"])
def test_recovery_of_a_policy_is_equal_to_the_bit(tmp_path: Path, by: str, snapshot_every: int) -> None:
    async def main() -> Any:
        models = Models(tmp_path, Policy(snapshot_every=snapshot_every), Limits(), lambda reason: None)
        models.open()
        rules = InputRules(ask={"budget": 0.1, "by": by})
        model = await models.create("m", "arow", {}, rules=rules)
        for start in range(0, 1500, 50):
            rows = [{"x": {**instance(i)["x"], "kind": f"k{i % 5}"}, "keep": True} for i in range(start, start + 50)]
            kept = await send_rows(model, rows)
            labels = [{"id": one["id"], "y": instance(start + k)["y"]} for k, one in enumerate(kept) if one["ask"]]
            await send_rows(model, labels[::2])
        await model.drain()
        abandon(models)
        return model.state

    state = asyncio.run(main())
    found, recovery = stored(tmp_path, "m")
    assert ((recovery.snapshot > 0), recovery.set_aside) == (snapshot_every == 700, [])
    assert fingerprint(found) == fingerprint(state)
    assert found.asking.dump() == state.asking.dump()
    assert found.asking.estimate().labels > 10
    assert found.worth_asking(50) == state.worth_asking(50)


def test_wrong_policies_are_rejected_and_make_no_model(client: httpx.Client) -> None:
    wrong = [
        ({"ask": {"budget": 2}}, "'budget' parameter of AskPolicy"),
        ({"ask": {"budgets": 0.1}}, "ask has no field 'budgets'; did you mean budget"),
        ({"ask": {"by": "magic"}}, "'by' parameter"),
        ({"ask": 0.05}, 'not an object such as {"budget": 0.05}'),
        ({"method": "arowregressor", "ask": {}}, "ask is for classifiers"),
        ({"method": "loda", "ask": {}}, "ask is for classifiers"),
    ]
    for body, text in wrong:
        found = client.put("/models/wrong", json={"method": "arow", **body})
        assert (found.status_code, text in found.json()["error"]) == (422, True), found.json()
        assert client.get("/models/wrong").status_code == 404


def test_a_list_needs_a_policy_and_a_number(client: httpx.Client, model: str) -> None:
    found = client.get(f"/models/{model}/ask")
    assert (found.status_code, "requests no labels" in found.json()["error"]) == (422, True)
    client.put("/models/listing", json={"method": "arow", "ask": {"budget": 0.5}})
    for most in ("0", "101", "many"):
        assert client.get("/models/listing/ask", params={"most": most}).status_code == 422
    assert client.get("/models/listing/ask").json()["instances"] == []
    client.delete("/models/listing")


def test_a_regressor_does_not_replace_the_learner_of_a_policy(client: httpx.Client) -> None:
    from varifold import AROWRegressor

    client.put("/models/classes", json={"method": "arow", "ask": {}})
    found = client.post("/models/classes/restore", content=AROWRegressor().to_bytes())
    assert (found.status_code, "ask is for classifiers" in found.json()["error"]) == (422, True)
    assert client.post("/models/classes/predict", json={"x": {"a": 1.0}, "keep": True}).json()["ask"] is True
    client.delete("/models/classes")


def test_devices_share_the_budget(client: httpx.Client) -> None:
    client.put("/models/fleet", json={"method": "arow", "key": "device", "ask": {"budget": 0.5}})
    for i in range(40):
        client.post("/models/fleet/predict", json={"x": {"a": float(i)}, "key": f"d{i % 2}", "keep": True, "id": i})
    rows = client.get("/models/fleet/ask").json()["instances"]
    assert {one["key"] for one in rows} == {"d0", "d1"}
    body = {"id": rows[0]["id"], "key": rows[0]["key"], "y": "ok"}
    assert client.post("/models/fleet/labels", json=body).status_code == 200
    client.delete("/models/fleet")


def test_drawn_instances_come_in_between() -> None:
    assert _interleaved([1, 2, 3, 4, 5], ["a", "b"], 3) == [1, "a", 2, 3, "b", 4, 5]
    assert _interleaved([1], ["a", "b", "c"], 5) == [1, "a", "b", "c"]
    assert _interleaved([], [], 5) == []
    assert _interleaved([1], ["a"], 1) == ["a", 1]


def test_clients_request_labels(shared: Server) -> None:
    with RemoteClassifier(shared.url, "far", method="arow", ask={"budget": 0.01}) as remote:
        kept = [remote.keep_one({"f0": float(i % 2)}) for i in range(30)]
        assert all(one.ask for one in kept[:16])
        assert sum(one.ask for one in kept) <= 18
        rows = remote.requested(5)
        assert len(rows) == 5
        remote.label(rows[0]["id"], "up")
        assert remote.steps == 1

    async def listed_too() -> list[dict[str, Any]]:
        async with AsyncRemoteModel(shared.url, "far") as model:
            return await model.requested(3)

    assert len(asyncio.run(listed_too())) == 3
    with shared.client() as client:
        client.delete("/models/far")


# ---------------------------------------------------------------------- follow


def line(i: int, **more: Any) -> bytes:
    return orjson.dumps({**instance(i)["x"], "n": i, **more})


def test_follow_says_which_lines_are_worth_a_label(tmp_path: Path) -> None:
    rules = InputRules(target="state", id="n", ask={"budget": 0.05})
    follower = Follower.open(tmp_path / "s", "m", AROW(), rules, Limits())
    asked = []
    for i in range(300):
        (found,) = outputs(follower, line(i))
        asked.append(found["ask"])
        if found["ask"]:
            outputs(follower, orjson.dumps({"n": i, "state": instance(i)["y"]}))
        if i == 150:  # as if it was killed
            follower.database.close()
            follower = Follower.open(tmp_path / "s", "m", AROW(), rules, Limits())
    whole = Follower.open(None, "m", AROW(), rules, Limits())
    for i, ask in enumerate(asked):
        assert outputs(whole, line(i))[0]["ask"] == ask
        if ask:
            outputs(whole, orjson.dumps({"n": i, "state": instance(i)["y"]}))
    assert 48 <= sum(asked) <= 56
    assert "ask" not in outputs(follower, line(999, state="up"))[0]
    follower.close()
    with pytest.raises(ParameterError, match=r"--ask: the state in .* has the policy"):
        Follower.open(tmp_path / "s", "m", AROW(), InputRules(target="state", id="n", ask={"budget": 0.1}), Limits())


def test_follow_requests_no_numbers() -> None:
    rules = InputRules(target="state", id="n", ask={})
    follower = Follower.open(None, "m", AROW(), rules, Limits(), AROW)
    with pytest.raises(DataError, match="--ask is for classes"):
        follower.process([line(i, state=i / 7) for i in range(40)])


def test_follow_on_the_command_line() -> None:
    process = follow("--id", "n", "--ask", "0.01")
    out, errors = process.communicate(b"".join(line(i) + b"\n" for i in range(40)))
    asked = [orjson.loads(text)["ask"] for text in out.splitlines()]
    assert 16 <= sum(asked) <= 18
    assert f"{sum(asked)} of 40 labels requested; no requested label has arrived".encode() in errors
    process = follow("--ask", "0.5")
    _, errors = process.communicate(b"")
    assert b"--ask needs --id" in errors


def test_follow_states_the_weighted_error_alone() -> None:
    labelled = [(line(i), orjson.dumps({"n": i, "state": "ab"[i % 2]})) for i in range(60)]
    lines = [text + b"\n" for pair in labelled for text in pair]
    _, errors = follow("--id", "n", "--ask", "0.05").communicate(b"".join(lines))
    assert b"unweighted" in errors
    assert b" over " not in errors  # the plain error of requested labels is biased


# ---------------------------------------------------------------------- a person


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme", "rows"), [(390, "dark", 10_000), (1300, "light", 2_000)])
def test_a_person_labels_ten_of_thousands(
    make_server: Callable[..., Server], width: int, scheme: str, rows: int
) -> None:
    from playwright.sync_api import sync_playwright

    server = make_server().start()
    with server.client() as client, sync_playwright() as playwright:
        client.put("/models/m", json={"method": "arow", "ask": {"budget": 0.05}})
        taught(client, "m", 10)
        for start in range(1000, 1000 + rows, 1000):
            keep(client, "m", start, start + 1000)
        assert abs(listed(client, "m")["requested"] - rows // 20) <= 10
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(server.url)
        page.wait_for_selector("#asking-list li:nth-child(10)", timeout=20_000)
        assert page.locator("#asking-list li").count() == 10
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        bottom = page.locator("#asking-list").bounding_box()["height"]
        for row in range(1, 11):
            one = page.locator(f"#asking-list li:nth-child({row})")
            number = int(one.locator("b").inner_text()[1:])
            one.locator(f"button[data-label={instance(number)['y']}]").click()
            one.locator(".asked-done", has_text=f"learned: {instance(number)['y']}").wait_for(timeout=10_000)
            if row < 10:  # no row moves under a finger
                assert page.locator("#asking-list").bounding_box()["height"] == bottom
        assert client.get("/models/m").json()["steps"] == 20
        page.wait_for_selector("#asking-list li:not([data-state])", timeout=10_000)  # the next ten
        assert "estimated from 2 requested labels" in page.inner_text("#asking-estimate")
        one = page.locator("#asking-list li:nth-child(1)")
        one.locator("button.other").click()
        one.locator("input").fill("stuck")
        one.locator("form button").click()
        one.locator(".asked-done", has_text="learned: stuck").wait_for(timeout=10_000)
        assert client.get("/models/m").json()["labels"] == ["down", "up", "stuck"]
        before = listed(client, "m", 100)
        server.kill()
        server.start()
        with server.client() as again:
            assert listed(again, "m", 100) == before
        assert errors == []
        chromium.close()


def test_a_configuration_makes_models_that_request_labels() -> None:
    from varifold.cli.serve import _models

    made = _models({"models": {"plant": {"ask": {"budget": 0.1, "by": "margin"}, "input": {"time": "ts"}}}}, None)
    assert made["plant"].rules.ask["budget"] == 0.1
    assert made["plant"].rules.time == "ts"
    with pytest.raises(ParameterError, match=r"\[models.plant\]: The 'budget' parameter"):
        _models({"models": {"plant": {"ask": {"budget": 7}}}}, None)


def test_rules_keep_the_policy_when_they_are_stored() -> None:
    rules = InputRules.of_model({"input": {"time": "ts"}, "ask": {"budget": 0.1}})
    assert InputRules.from_json(rules.to_json()).ask == rules.ask == AskPolicy(0.1).params
    assert InputRules.of_model({}).to_json() == {}


@pytest.mark.parametrize("labelled", [False, True])
def test_requested_instances_that_wait_no_longer_are_forgotten(labelled: bool) -> None:
    state = ModelState("m", AROW(), Limits(waiting=10), rules=InputRules(ask={"budget": 0.5}))
    for i in range(2_000):
        state.apply({"x": instance(i)["x"], "keep": True, "id": i}, b"{}")
        if labelled:
            state.apply({"id": i, "y": instance(i)["y"]}, b"{}")
    assert state.asking is not None
    assert state.asking.asked > 500
    assert len(state._requested) <= 40


def test_requested_labels_that_pause_raise_no_alert(tmp_path: Path) -> None:
    async def main(rules: InputRules) -> list[str]:
        models = Models(tmp_path / str(rules.ask is None), Policy(), Limits(), lambda reason: None)
        models.open()
        monitor = (await models.create("m", "arow", {}, rules=rules)).state.monitor
        alerts = Alerts(models, AlertRules())
        for step in range(2000):
            monitor.observe({"a": 1.0})
            if step < 1500:
                monitor.labelled()
        alerts.check()
        await models.stop()
        return [event["kind"] for event in models.events.latest]

    assert "labels-dropped" in asyncio.run(main(InputRules()))
    assert "labels-dropped" not in asyncio.run(main(InputRules(ask={})))
