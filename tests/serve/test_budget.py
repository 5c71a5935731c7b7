"""Budgets: memory of learners, labels of a classifier, bytes that wait for labels, and what deleted models leave."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.serve.following import stored
from tests.serve.server import Server, instance
from varifold import AROW, AutoClassifier, PerKey
from varifold.errors import FeatureValueError
from varifold.serve.core import learners
from varifold.serve.core.budget import ModelBudget, ServerBudget, learner_bytes
from varifold.serve.core.errors import BudgetError, RejectedError
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.http.app import App, BodyLimits

WIDE = {f"f{i}": float(i) for i in range(2_000)}
DENSE = {"covariance": "full", "max_dense": 8_192}


def test_parameters_that_need_much_memory_are_stopped_by_the_budget(make_server: Callable[..., Server]) -> None:
    """A matrix of 2,000 x 2,000 per label: 32 MB each."""
    server = make_server("--max-model-memory", "100M").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow", "params": DENSE})
        client.put("/models/other", json={"method": "arow"})
        found = [client.post("/models/m/learn", json={"x": WIDE, "y": f"label {i}"}) for i in range(8)]
        codes = [one.status_code for one in found]
        assert set(codes) == {200, 507}
        assert codes == sorted(codes)
        assert "budget of 100 MiB" in found[-1].json()["error"]
        steps = codes.count(200)
        assert client.get("/models/m").json()["steps"] == steps
        assert client.get("/models/m").json()["bytes"] <= 100 << 20
        assert client.post("/models/other/learn", json=instance(1)).status_code == 200
        assert client.post("/models/m/learn", json={"x": {"f1": 2.0}, "y": "label 0"}).status_code == 200
        digest = client.get("/models/m/digest").json()["digest"]
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["steps"] == steps + 1
        assert client.get("/models/m/digest").json()["digest"] == digest


def test_a_change_that_no_longer_fits_at_recovery_is_set_aside(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow", "params": DENSE})
        for row in (instance(0), {"x": WIDE, "y": "up"}, instance(1)):
            assert client.post("/models/m/learn", json=row).status_code == 200
    server.kill()
    server.options = ("--max-memory", "20M")
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["steps"] == 2
        assert client.get("/readyz").status_code == 200
        assert client.post("/models/m/learn", json=instance(2)).status_code == 200
    assert "change 2 could not be learned again and is set aside: the model 'm' uses" in server.log()


def test_the_models_of_a_server_share_its_budget() -> None:
    server = ServerBudget(3_000_000, 2_000_000)
    budgets = [ModelBudget(server, name) for name in "ab"]
    models = [AROW(), AROW()]

    def learn(which: int, n: int) -> None:
        for i in range(n):
            x = {f"f{i}-{k}": 1.0 for k in range(100)}
            budgets[which].learn(models[which], x, "up", 1.0, size=2_000)

    with pytest.raises(BudgetError, match="'a' uses"):
        learn(0, 1_000)
    assert learner_bytes(models[0]) <= 2_000_000
    with pytest.raises(BudgetError, match="'b' uses"):
        learn(1, 1_000)
    assert sum(map(learner_bytes, models)) <= 1.02 * 3_000_000  # names alone need no memory of the engine
    assert learner_bytes(models[1]) > 400_000
    budgets[0].close()
    learn(1, 10)
    before = learners.digest(models[1])
    with pytest.raises(BudgetError):
        learn(1, 1_000)
    assert learners.digest(models[1]) != before


def test_what_would_exceed_the_part_for_waiting_instances_is_rejected_before() -> None:
    budget = ModelBudget(ServerBudget(400_000), "m")
    budget.hold(99_000)
    budget.check_held(1_000)
    with pytest.raises(BudgetError, match="a quarter of --max-memory"):
        budget.check_held(1_001)


def test_rejected_instances_do_not_use_up_the_budget() -> None:
    budget = ModelBudget(ServerBudget(1_000_000), "m")
    with pytest.raises(FeatureValueError):
        budget.learn(AROW(), {"a": float("inf")}, "up", 1.0, size=100_000)
    assert budget.used < 10_000


def test_a_learner_is_made_within_what_other_models_leave() -> None:
    server = ServerBudget(2_000_000)
    model = AROW()
    model.learn_one({f"f{i}": 1.0 for i in range(1_000)}, "up")
    other = ModelBudget(server, "m")
    assert server.make(learners.from_bytes, model.to_bytes()).steps == 1
    other._set(1_999_000)
    with pytest.raises(BudgetError, match="more than the 1,000 bytes that the server has left"):
        server.make(learners.from_bytes, model.to_bytes())


def test_long_names_count() -> None:
    budget = ModelBudget(ServerBudget(20_000_000), "m")
    model = AROW()

    def learn(n: int) -> None:
        for i in range(n):
            name = f"{i:04}" * 250_000
            budget.learn(model, {name: 1.0, f"{i}": 2.0}, "up", 1.0, size=len(name))

    with pytest.raises(BudgetError):
        learn(100)
    assert learner_bytes(model) < 25_000_000


def test_text_that_adds_no_name_does_not_use_up_the_budget() -> None:
    budget = ModelBudget(ServerBudget(1_000_000), "m")
    model = AROW()
    for i in range(3_000):
        budget.learn(model, {f"f{i // 100}": 1.0}, "up", 1.0, size=1_000)
    assert model.steps == 3_000


@pytest.mark.parametrize("max_keys", [None, 5])
def test_a_model_that_pauses_leaves_to_others_what_it_does_not_use(max_keys: int | None) -> None:
    """Keys that come and go, and instances without a new name, use no memory in the end."""
    server = ServerBudget(2 << 20)
    learner = AROW() if max_keys is None else PerKey(AROW(), key="order", max_keys=max_keys)
    pauses, other = (ModelState(str(i), one, Limits(), budget=server) for i, one in enumerate([learner, AROW()]))
    for i in range(3_000):
        pauses.apply({"x": {"a": 1.0, "b": 2.0}, "y": "up", **({"key": f"o{i}"} if max_keys else {})}, b" " * 600)
        assert server.used == pauses.budget.used + other.budget.used < 1.1 * (1 << 20)
    for i in range(300):
        other.apply({"x": {f"w{i}": 1.0, "p": 1.0}, "y": "up"}, b" " * 60)
    assert (pauses.learner.steps, other.learner.steps) == (3_000, 300)
    assert server.make(AROW).steps == 0


def test_learners_are_measured_when_half_of_what_was_left_is_counted() -> None:
    """So the metrics of a server do not rise to its limit, and learners are seldom measured."""
    server = ServerBudget(8 << 20)
    state = ModelState("m", AROW(), Limits(), budget=server)
    used = []
    for _ in range(20_000):
        state.apply({"x": {"a": 1.0}, "y": "up"}, b" " * 1_000)
        used.append(server.used)
    assert max(used) <= 4.1 * (1 << 20)
    assert sum(after < before for before, after in itertools.pairwise(used)) == 5


def test_learners_by_key_move_to_disk_before_the_budget_ends() -> None:
    budget = ModelBudget(ServerBudget(1_000_000), "m")
    model = PerKey(AROW(), key="device")
    for i in range(600):
        budget.learn(model, {"device": f"d{i % 300}", **instance(i)["x"]}, instance(i)["y"], 1.0, size=100)
        assert i % 20 or learner_bytes(model) <= 1_000_000
    assert model.steps == 600
    assert len(model.keys) == 300
    assert 20 < len(model.in_memory()) < 200
    assert learner_bytes(model) <= 1_000_000


def test_large_learners_by_key_are_loaded_again_within_the_budget() -> None:
    """To load one takes several times its size, more than moving one other to disk leaves."""
    budget = ModelBudget(ServerBudget(4 << 20), "m")
    model = PerKey(AutoClassifier(), key="device")
    rng = random.Random(2)
    for i in range(120):
        budget.learn(model, {"device": f"d{rng.randrange(40)}", **instance(i)["x"]}, instance(i)["y"], 1.0, size=100)
    assert model.steps == 120
    assert 2 < len(model.in_memory()) < len(model.keys)
    assert learner_bytes(model) <= 4 << 20


def test_predictions_load_learners_by_key_within_the_budget() -> None:
    budget = ServerBudget(1 << 20)
    state = ModelState("m", PerKey(AROW(), key="d"), Limits(), budget=budget)
    for i in range(400):
        state.apply({"x": {f"f{j}": 1.0 for j in range(40)}, "y": "up" if i % 2 else "down", "key": f"d{i}"}, b"")
    assert len(state.learner.in_memory()) < 200
    for i in range(400):
        assert state.predict({"x": {"f1": 1.0}, "key": f"d{i}"})["label"] == ("up" if i % 2 else "down")
        assert learner_bytes(state.learner) <= (1 << 20) + (8 << 10)  # objects are counted after a learner is loaded


def test_a_number_sent_to_a_classifier_does_not_make_classes_without_end(tmp_path: Path) -> None:
    state = ModelState("m", AROW(), Limits(labels=20))
    for i in range(20):
        state.apply({"x": {"a": 1.0}, "y": i + 0.5}, b"")
    with pytest.raises(RejectedError, match=r"y is '99.5', a new label, .* 20 already; .* autoregressor"):
        state.apply({"x": {"a": 1.0}, "y": 99.5}, b"")
    with pytest.raises(RejectedError, match="--max-labels"):
        state.apply({"x": {"a": 1.0}, "y": "new"}, b"")
    state.apply({"x": {"a": 1.0}, "y": 3.5}, b"")
    assert (state.learner.steps, len(state.learner.classes)) == (21, 20)


def test_waiting_instances_are_bounded_in_bytes() -> None:
    state = ModelState("m", AROW(), Limits(waiting_bytes=10_000))
    for i in range(50):
        state.apply({"x": {f"{i:0500}": 1.0}, "keep": True}, b"")
    assert 15 < len(state.waiting) < 20
    assert state.waiting.bytes == sum(len(one.x) for one in state.waiting._waiting.values()) <= 10_000
    assert state.waiting.expired == 50 - len(state.waiting)


def test_the_models_of_a_server_share_what_they_keep() -> None:
    """Instances that wait and ids of all models: a quarter of the budget."""
    server = ServerBudget(400_000)
    states = [ModelState(f"m{i}", AROW(), Limits(ids=50), budget=server) for i in range(9)]

    def keep(state: ModelState, i: int) -> None:
        state.apply({"x": {"a": 1.0, "text": "t" * 1_000}, "keep": True, "id": i}, b"")

    def learn(state: ModelState, n: int) -> None:
        for i in range(n):
            state.apply({"x": {"a": 1.0}, "y": "up", "id": f"new {i}"}, b"")

    for i in range(10):
        for state in states[:4]:
            keep(state, i)
    with pytest.raises(BudgetError, match="a quarter of --max-memory"):
        learn(states[4], 45)
    with pytest.raises(BudgetError, match="a quarter of --max-memory"):
        keep(states[5], 1)
    assert server.held < 101_000
    held, seq = server.held, states[0].seq
    states[0].apply({"id": 3, "y": "up"}, b"")
    assert (server.held, states[0].seq) == (held - 500 - states[1].waiting.bytes // 10, seq + 1)
    states[1].budget.close()
    assert server.held < held - 10_000
    keep(states[4], 99)


def test_bodies_in_progress_are_bounded() -> None:
    """Two bodies that are not complete leave no space for a third; when they end, it is released."""
    app = App(None, None, BodyLimits(total=10_000))  # type: ignore[arg-type]

    async def request(size: int) -> int:
        parts = iter([{"type": "http.request", "body": b" " * size, "more_body": True}])
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return next(parts, None) or await asyncio.Future()

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        headers = [(b"host", b"127.0.0.1")]
        await app({"type": "http", "method": "PUT", "path": "/models/m", "headers": headers}, receive, send)
        return statuses[0]

    async def main() -> int:
        waiting = [asyncio.ensure_future(request(4_000)) for _ in range(2)]
        await asyncio.sleep(0)
        status = await request(4_000)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return status

    assert asyncio.run(main()) == 429
    assert app._receiving == 0


def test_long_names_do_not_fill_the_snapshot(tmp_path: Path) -> None:
    """The monitor's names are part of each snapshot: 400 of them in 96 bins, each of a megabyte, would not fit."""
    state = ModelState("m", PerKey(AROW(), key="d"), Limits())
    for i in range(2_000):
        state.apply({"x": {"a": 1.0, f"{i % 20:03}" + "n" * 5_000: 1.0}, "y": "up", "key": f"d{i % 3}"}, b"")
    head, _ = state.parts()
    assert len(head) < 20_000
    assert {row["name"] for row in state.monitor.features()} == {"a"}
    assert set(state.devices.get("d0").sensors) == {"a"}  # type: ignore[union-attr]


def test_a_deleted_model_leaves_nothing(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        for i in range(5):
            client.put(f"/models/m{i}", json={"method": "arow"})
            client.post(f"/models/m{i}/learn", json=instance(1))
            client.get(f"/models/m{i}/report")
            client.delete(f"/models/m{i}")
        text = client.get("/metrics").text
        assert "m0" not in text
        assert "varifold_store_memory_bytes 0.0" in text


def test_a_slow_model_takes_turns_with_the_others(tmp_path: Path) -> None:
    """Many changes of a slow model wait at the same time: a prediction of another waits for one or two of them."""

    async def main() -> tuple[int, int]:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        slow, quick = await models.create("slow", "arow", {}), await models.create("quick", "arow", {})
        slow.row_seconds = 1.0
        done: list[str] = []

        async def change(i: int) -> None:
            await slow.turn()
            slow.row_seconds = 1.0
            await asyncio.sleep(0)
            done.append("slow")
            await slow.submit(instance(i), orjson.dumps(instance(i)))

        async def predict() -> None:
            await asyncio.sleep(0)
            await quick.turn()
            done.append("quick")

        changes = [asyncio.ensure_future(change(i)) for i in range(50)]
        await predict()
        await asyncio.gather(*changes)
        await models.stop()
        return done.index("quick"), len(done)

    at, n = asyncio.run(main())
    assert (at <= 2, n) == (True, 51)


def test_inspection_of_a_large_model_does_not_pack_it(make_server: Callable[..., Server]) -> None:
    server = make_server("--max-batch", str(1 << 28)).start()
    with httpx.Client(base_url=server.url, timeout=60.0) as client:
        client.put("/models/m", json={"method": "arow"})
        rows = [{"x": {f"f{i}-{k}": 1.0 for k in range(1_000)}, "y": "up"} for i in range(200)]
        client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
        shown = client.get("/models/m").json()
        assert shown["steps"] == 200
        assert "digest" not in shown
        file = client.get("/models/m/file")
        assert learners.from_bytes(file.content).steps == 200
    server.kill()
    state, _ = stored(server.folder, "m")
    assert learners.to_bytes(state.learner) == file.content


def test_recovery_of_many_learners_by_key_is_lazy() -> None:
    model = PerKey(AROW(), key="device")
    for i in range(300):
        model.learn_one({"device": i, "a": 1.0}, "up")
    again: Any = learners.from_bytes(model.to_bytes())
    assert len(again.in_memory()) == 100
    assert learners.to_bytes(again) == model.to_bytes()
    assert again.predict_one({"device": 299, "a": 1.0}) == "up"
