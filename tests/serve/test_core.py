"""State, transactions, snapshots and recovery without a network."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.following import stored
from tests.serve.server import instance
from varifold import AROW
from varifold.errors import OutOfMemoryError, VarifoldError
from varifold.serve.core import learners, snapshot
from varifold.serve.core.budget import ServerBudget
from varifold.serve.core.database import Database
from varifold.serve.core.errors import (
    BudgetError,
    BusyError,
    ConflictError,
    DiskError,
    NotFoundError,
    RejectedError,
    StoppedError,
)
from varifold.serve.core.models import Model, Models, Policy
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.http.messages import error_response

METHODS = ["arow", "auto", "orf3v", "ovfm"]


def fingerprint(state: ModelState) -> tuple[Any, ...]:
    ids = [(*names, *known) for names, known in state.ids._known.items()]
    row = state.row._replace(time=0, snapshot=0)  # a rejected change takes time, but is not stored
    return learners.digest(state.learner), row, state.waiting.dump(), ids, state.monitor.dump()


async def send(model: Model, body: Any) -> Any:
    if isinstance(body, bytes):
        return await model.restore(body)
    return await model.submit(body, orjson.dumps(body))


async def send_rows(model: Model, rows: list[dict[str, Any]]) -> Any:
    return await model.submit_rows([(row, orjson.dumps(row)) for row in rows], 100)


def abandon(models: Models) -> None:
    """Leave as a crash would: nothing is stopped or closed cleanly."""
    models.committer.disk.shutdown()
    models.database.close()
    os.close(models._lock)


def run(folder: Path, work: Callable[[Models, Model], Any], method: str = "arow", **policy: Any) -> ModelState:
    """Do some work on a model and leave as a crash would."""

    async def main() -> ModelState:
        models = Models(folder, Policy(**policy), Limits(), lambda reason: None)
        models.open()
        model = models["m"] if "m" in models else await models.create("m", method, {})
        await work(models, model)
        await model.drain()
        abandon(models)
        return model.state

    return asyncio.run(main())


async def mixed_work(models: Models, model: Model) -> None:
    """Learns, kept predictions, labels, duplicates, rejected changes and rows, some of them in one group."""
    start = model.state.seq
    for i in range(start, start + 30):
        await asyncio.gather(*(send(model, {**instance(4 * i + k), "id": f"a{i}-{k % 3}"}) for k in range(4)))
        kept = await send(model, {"x": instance(i)["x"], "keep": True, "id": f"k{i}"})
        if i % 2:
            await send(model, {"id": kept["id"], "y": "up"})
        await send(model, {"x": instance(i)["x"], "y": None, "predict": True})
        await send(model, {"x": instance(i)["x"], "y": None, "keep": True, "id": f"u{i}"})
        assert (await send(model, {"x": instance(i)["x"], "y": None, "id": f"u{i}"}))["duplicate"]
        with pytest.raises(RejectedError):
            await send(model, {"x": {"a": "b", "a=b": 1.0}, "y": "up"})
        await send_rows(model, [instance(1000 + i), {"x": instance(i)["x"], "keep": True}, {"id": "nobody", "y": "up"}])


def test_an_instance_without_a_label_is_learned_by_those_that_can():
    for method, learned in (("arow", False), ("gaussiannb", True)):
        state = ModelState("m", learners.make(method, {}), Limits())
        for i in range(20):
            state.apply(instance(i), orjson.dumps(instance(i)))
        before, counted = learners.digest(state.learner), state.learned
        body = {"x": instance(50)["x"], "y": None}
        assert state.apply(body, orjson.dumps(body)) == {"seq": 21}
        assert (learners.digest(state.learner) != before) == learned
        taught = learners.digest(state.learner)
        body = {"x": instance(51)["x"], "y": None, "keep": True, "id": "later"}
        assert state.apply(body, orjson.dumps(body))["label"] in state.learner.classes
        assert (learners.digest(state.learner) != taught) == learned
        assert state.learned == counted
        state.apply({"id": "later", "y": "up"}, b"{}")
        assert (state.learned, len(state.waiting)) == (counted + 1, 0)


@pytest.mark.parametrize("method", ["arowregressor", "copularegressor"])
@pytest.mark.parametrize("key", [None, "key"])
def test_errors_of_extreme_targets_are_stored(tmp_path: Path, method: str, key: str | None) -> None:
    async def main() -> None:
        for more in range(2):
            models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
            models.open()
            model = models["m"] if "m" in models else await models.create("m", method, {}, key)
            for i in range(40):
                body = {"x": {"a": i}, "y": 1.7e308 * (-1) ** i, "predict": True}
                await send(model, {**body, **({} if key is None else {"key": i % 6})})
            assert model.state.learner.steps == 40 * (more + 1)
            assert 0.0 < model.state.monitor.error.mean < 2e100
            assert orjson.loads(orjson.dumps(model.state.devices.dump())) == model.state.devices.dump()
            await models.stop()

    asyncio.run(main())


def test_the_error_of_a_classifier_is_a_share_also_with_numbers_as_labels() -> None:
    state = ModelState("m", AROW(), Limits())
    rows = [({"x": {"a": 1}, "y": [10.0, 20.0][i // 20 % 2], "predict": True}, b"{}") for i in range(80)]
    state.apply_rows(rows)
    state.apply_rows([({"x": {"a": 1}, "y": [10.0, 20.0][i // 20 % 2]}, b"{}") for i in range(80)])
    assert state.monitor.error.scored == 79 + 10  # all but the first, and every 8th
    assert 0.0 < state.monitor.error.mean <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_recovery_is_equal_to_the_bit(tmp_path: Path, method: str) -> None:
    state = run(tmp_path, mixed_work, method)
    found, recovery = stored(tmp_path, "m")
    assert (recovery.snapshot, recovery.replayed, recovery.set_aside) == (0, state.seq, [])
    assert fingerprint(found) == fingerprint(state)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("method", ["arow", "auto"])
def test_recovery_from_a_snapshot_and_the_changes_after_it(
    tmp_path: Path, method: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_is_small", lambda state: small)
    state = run(tmp_path, mixed_work, method, snapshot_every=150)
    found, recovery = stored(tmp_path, "m")
    assert recovery.snapshot >= 150
    assert 0 < recovery.replayed < 300
    assert fingerprint(found) == fingerprint(state)


def test_recovery_goes_on_and_recovers_again(tmp_path: Path) -> None:
    run(tmp_path, mixed_work)
    run(tmp_path, mixed_work)
    state = run(tmp_path, mixed_work, snapshot_every=200)
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_a_crash_within_a_snapshot_loses_nothing(tmp_path: Path) -> None:
    """Some parts are there but not all, or all are there but what they replace is not removed yet."""

    async def work(models: Models, model: Model) -> None:
        await mixed_work(models, model)
        parts = list(snapshot.split(model.state.parts()))
        models.database.add_part(model.state.id, model.state.seq, 0, parts[0])
        await send(model, instance(7))
        if finished:
            for number, data in enumerate(parts):
                models.database.add_part(model.state.id, model.state.seq - 1, number, data)
            models.database.finish_snapshot(model.state.id, model.state.seq - 1)

    for finished in (False, True):
        state = run(tmp_path, work)
        found, recovery = stored(tmp_path, "m")
        assert fingerprint(found) == fingerprint(state)
        assert recovery.replayed == (1 if finished else state.seq)


def test_a_snapshot_removes_the_changes_before_it(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        for i in range(130):
            await send(model, instance(i))
            await model.drain()

    run(tmp_path, work, snapshot_every=50)
    database = Database(tmp_path)
    assert database._db.execute("SELECT min(first) FROM changes").fetchone() == (101,)
    assert database._db.execute("SELECT DISTINCT seq FROM snapshots").fetchall() == [(100,)]
    database.close()


def test_a_change_that_fails_at_recovery_is_set_aside_and_the_rest_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another version is installed, which rejects what the one before has learned."""
    run(tmp_path, mixed_work)
    learn = AROW.learn_one

    errors = {3: OutOfMemoryError("no memory"), 7: ZeroDivisionError()}

    def changed(self: AROW, x: Any, y: Any, w: float = 1.0, memo: bytes | None = None) -> None:
        if self.steps in errors:
            raise errors.pop(self.steps)
        learn(self, x, y, w, memo)

    served = []

    async def work(models: Models, model: Model) -> None:
        served.extend(event["text"] for event in models.events.latest if event["kind"] == "set-aside")
        assert (await send(model, instance(5)))["seq"] == model.state.seq
        await model.drain()

    with monkeypatch.context() as patch:
        patch.setattr(AROW, "learn_one", changed)
        state = run(tmp_path, work)
    assert served == ["2 changes could not be learned again and are set aside; the first is change 5: no memory"]
    database = Database(tmp_path)
    assert database._db.execute("SELECT seq, reason FROM set_aside").fetchall() == [
        (5, "no memory"),
        (13, "ZeroDivisionError()"),
    ]
    database.close()
    found, recovery = stored(tmp_path, "m")
    assert recovery.set_aside == []
    assert fingerprint(found) == fingerprint(state)


def test_a_rejected_change_leaves_the_state_and_is_not_stored(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        await send(model, {"x": {"valve": "open"}, "y": "up"})
        before = learners.digest(model.state.learner)
        with pytest.raises(RejectedError, match="valve=open"):
            await send(model, {"x": {"valve=open": 1.0}, "y": "up"})
        assert learners.digest(model.state.learner) == before

    run(tmp_path, work)
    assert stored(tmp_path, "m")[1].replayed == 1


def test_a_learn_that_is_rejected_for_lack_of_memory_is_not_learned_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OutOfMemoryError("no memory: the instance was not learned")

    async def work(models: Models, model: Model) -> None:
        await send(model, instance(0))
        with monkeypatch.context() as patch:
            patch.setattr(AROW, "learn_one", fail)
            for _ in range(2):
                with pytest.raises(RejectedError, match="was not learned"):
                    await send(model, instance(1))
            (answer,) = await send_rows(model, [instance(2)])
            assert answer["status"] == 422
        await send(model, instance(3))

    run(tmp_path, work)
    found, recovery = stored(tmp_path, "m")
    assert (found.learner.steps, recovery.replayed) == (2, 2)


def test_a_label_that_is_rejected_leaves_the_instance_waiting(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        kept = await send(model, {"x": {"a": "b"}, "keep": True})
        await send(model, {"x": {"a=b": 1.0}, "y": "up"})
        with pytest.raises(RejectedError, match="'a=b'"):
            await send(model, {"id": kept["id"], "y": "up"})
        assert (len(model.state.waiting), model.state.seq) == (1, 2)

    state = run(tmp_path, work)
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_ids_are_remembered_in_bounded_memory(tmp_path: Path) -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(ids=3))
    database = Database.open(tmp_path)
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id

    def learn(given: str) -> dict[str, Any]:
        body = {"x": {"a": 1.0}, "y": "up", "id": given}
        return state.apply(body, orjson.dumps(body))

    for i in range(4):
        learn(f"i{i}")
    assert learn("i3") == {"seq": 4, "duplicate": True}
    assert state.learner.steps == 4
    assert learn("i0") == {"seq": 5}
    database.commit([state.take_unwritten() or pytest.fail("nothing to write")])
    assert [row[1] for row in database.ids(state.row)] == ["i2", "i3", "i0"]
    learn("i1")
    learn("i2")
    learn("i3")
    learn("i0")
    database.commit([state.take_unwritten() or pytest.fail("nothing to write")])
    assert [row[1] for row in database.ids(state.row)] == [names[1] for names in state.ids._known]
    database.close()


def test_ids_belong_to_a_key(tmp_path: Path) -> None:
    """Two devices count 1, 2, 3: neither is a duplicate of the other, and each gets its own label."""

    async def main() -> ModelState:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        model = await models.create("m", "arow", {}, "device")
        for key, value in (("a", 1.0), ("b", -1.0)):
            learned = await send(model, {"x": {"f": value}, "y": key, "key": key, "id": 1})
            assert "duplicate" not in learned
            assert (await send(model, {"x": {"f": value}, "y": key, "key": key, "id": 1}))["duplicate"]
            assert "duplicate" not in await send(model, {"x": {"f": value}, "keep": True, "key": key, "id": 2})
        with pytest.raises(ConflictError, match="the id '2' was given under 2 keys; send the \"key\" as well"):
            await send(model, {"id": 2, "y": "late"})
        await send(model, {"id": 2, "key": "b", "y": "late"})
        assert (model.state.learner.learner("a").steps, model.state.learner.learner("b").steps) == (1, 2)
        await send(model, {"id": 2, "key": "a", "y": "late"})
        await model.drain()
        abandon(models)
        return model.state

    state = asyncio.run(main())
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_an_id_that_is_forgotten_under_one_key_is_known_under_another(tmp_path: Path) -> None:
    database, state = Database.open(tmp_path), ModelState("m", learners.make("arow", {}, "device"), Limits(ids=2))
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    for key, given in (("a", "1"), ("b", "1"), ("c", "2")):
        body = {"x": {"f": 1.0}, "keep": True, "key": key, "id": given}
        state.apply(body, orjson.dumps(body))
        database.commit([state.take_unwritten() or pytest.fail("nothing to write")])
    assert [row[:2] for row in database.ids(state.row)] == [('"b"', "1"), ('"c"', "2")]
    state.apply({"id": "1", "y": "up"}, b"")
    assert state.learner.keys == ["b"]
    database.close()


def test_expired_instances_leave_the_store(tmp_path: Path) -> None:
    database, state = Database.open(tmp_path), ModelState("m", learners.make("arow", {}), Limits(waiting=3))
    state.id = database.add_model("m", state.incarnation, snapshot.split(state.parts())).id
    for i in range(6):
        body = {"x": {"f": float(i)}, "keep": True}
        state.apply(body, orjson.dumps(body))
        database.commit([state.take_unwritten() or pytest.fail("nothing to write")])
    assert [row[0] for row in database.waiting(state.row)] == [4, 5, 6]
    database.close()


def test_the_time_of_changes_does_not_run_backwards(tmp_path: Path) -> None:
    """Neither when the clock is set back nor over a restart: an instance would wait longer than allowed."""
    later = 10**15

    async def work(models: Models, model: Model) -> None:
        model.state.tick(later)
        await send(model, instance(0))

    assert run(tmp_path, work).time == later
    assert stored(tmp_path, "m")[0].time == later


def test_a_kept_instance_is_learned_when_it_comes_again_with_its_label(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        await send(model, {"x": {"a": 1.0}, "keep": True, "id": "i"})
        body = {"x": {"a": 1.0}, "y": "up", "id": "i", "w": 2.0}
        assert await send(model, body) == {"seq": 2}
        assert (await send(model, body))["duplicate"]

    state = run(tmp_path, work)
    plain = learners.make("arow", {})
    plain.learn_one({"a": 1.0}, "up", 2.0)
    assert (learners.digest(state.learner), len(state.waiting)) == (learners.digest(plain), 0)
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_two_changes_with_one_id_in_one_group_are_learned_once(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        body = {**instance(1), "id": "same"}
        outputs = await asyncio.gather(*(send(model, body) for _ in range(5)))
        assert [a["seq"] for a in outputs] == [1] * 5
        assert model.state.learner.steps == 1

    run(tmp_path, work)


def test_nothing_is_acknowledged_before_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even that an instance is a duplicate, while the first one is on its way to the disk."""
    order: list[str] = []
    commit = Database.commit

    def noted(self: Database, *given: Any) -> None:
        commit(self, *given)
        order.append("on disk")

    monkeypatch.setattr(Database, "commit", noted)

    async def work(models: Models, model: Model) -> None:
        for i in range(3):
            body = {**instance(i), "id": i}
            first, again = (model.submit(body, orjson.dumps(body)) for _ in range(2))
            for done in (first, again):
                await done
                order.append("acknowledged")

    run(tmp_path, work)
    assert order == ["on disk", "acknowledged", "acknowledged"] * 3


def test_a_model_file_is_sent_once_its_changes_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, released = Database.commit, threading.Event()

    def slow(self: Database, *given: Any) -> None:
        assert released.wait(20)
        commit(self, *given)

    async def work(models: Models, model: Model) -> None:
        monkeypatch.setattr(Database, "commit", slow)
        done, file = send_now(model, instance(0)), asyncio.ensure_future(model.packed())
        await asyncio.wait([file], timeout=0.2)
        assert not file.done()
        released.set()
        assert (await file)[0] == (await done)["seq"] == 1

    run(tmp_path, work)


def test_a_snapshot_is_written_after_its_changes_and_then_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def note(name: str) -> None:
        function = getattr(Database, name)

        def noted(self: Database, *given: Any) -> None:
            function(self, *given)
            order.append(name)

        monkeypatch.setattr(Database, name, noted)

    async def work(models: Models, model: Model) -> None:
        for name in ("commit", "add_part", "finish_snapshot"):
            note(name)
        await asyncio.gather(*(send_now(model, instance(i)) for i in range(50)))
        await model.drain()

    run(tmp_path, work, snapshot_every=50, fsync="always")
    assert [name for name, _ in itertools.groupby(order)] == ["commit", "add_part", "finish_snapshot"]
    assert order.count("commit") == 50


def test_a_disk_that_fails_stops_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), reasons.append)
        models.open()
        model, other = await models.create("m", "arow", {}), await models.create("n", "arow", {})
        await send(model, instance(0))

        def full(*_: Any) -> None:
            raise DiskError("No space left on device")

        monkeypatch.setattr(models.database, "commit", full)
        changes = asyncio.gather(*(send(model, instance(i)) for i in range(3)), return_exceptions=True)
        failures = await asyncio.wait_for(changes, 20)
        assert [type(f) for f in failures] == [StoppedError] * 3
        for one in (model, other):
            with pytest.raises(StoppedError, match="No space left"):
                await send(one, instance(9))
        await models.stop()

    asyncio.run(main())
    assert reasons == ["No space left on device"]
    found, recovery = stored(tmp_path, "m")
    assert (found.learner.steps, recovery.replayed) == (1, 1)


@pytest.mark.parametrize("where", ["server", "child"])
def test_a_snapshot_that_cannot_be_made_is_an_event_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(state: ModelState) -> Any:
        raise OSError(11, "no process can be started")

    kinds = []

    async def work(models: Models, model: Model) -> None:
        with monkeypatch.context() as patch:
            if where == "server":
                patch.setattr(snapshot, "begin", fail)
            else:
                patch.setattr(snapshot, "_is_small", lambda state: False)
                patch.setattr(ModelState, "parts", fail)
            await mixed_work(models, model)
            await model.drain()
        kinds.extend(event["kind"] for event in models.events.latest)
        assert model.snapshot_failed is not None

    state = run(tmp_path, work, snapshot_every=100)
    assert "snapshot" in kinds
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_one_process_per_folder(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from varifold.serve.core.models import Models, Policy;"
        "from varifold.serve.core.state import Limits\n"
        "try: Models(pathlib.Path(sys.argv[1]), Policy(), Limits(), print)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )

    async def main() -> str:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        command = [sys.executable, "-c", code, str(tmp_path)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        await models.stop()
        return found

    found = asyncio.run(main())
    assert found.startswith("StateError")
    assert "in use by another process" in found


def test_restore_replaces_the_learner_durably(tmp_path: Path) -> None:
    other = learners.make("olvf", {})
    other.learn_one({"a": 1.0}, "up")

    async def work(models: Models, model: Model) -> None:
        await mixed_work(models, model)
        await asyncio.gather(send(model, instance(1)), send(model, learners.to_bytes(other)), send(model, instance(3)))
        with pytest.raises(RejectedError):
            await send(model, b"no model file")

    state = run(tmp_path, work)
    assert state.learner.steps == 2
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


def test_a_model_that_is_being_deleted_is_not_found(tmp_path: Path) -> None:
    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        model = await models.create("m", "arow", {})
        pending = asyncio.ensure_future(send(model, instance(1)))
        await asyncio.sleep(0)
        deletion = asyncio.ensure_future(models.delete("m"))
        await asyncio.sleep(0)
        assert not deletion.done()
        assert ("m" in models, list(models)) == (False, [])
        with pytest.raises(NotFoundError):
            await models.delete("m")
        with pytest.raises(ConflictError, match="exists"):
            await models.create("m", "arow", {})
        with pytest.raises(StoppedError, match="is deleted"):
            model.submit(instance(2), b"{}")
        await deletion
        assert (await pending)["seq"] == 1
        assert models.budget.used == 0
        assert (await models.create("m", "olvf", {})).state.seq == 0
        await models.stop()

    asyncio.run(main())


@pytest.mark.parametrize("small", [True, False])
def test_recovery_of_models_by_key(tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners that are on disk while a child process packs the snapshot are in it as they were."""
    monkeypatch.setattr(snapshot, "_is_small", lambda state: small)

    async def main() -> ModelState:
        models = Models(tmp_path, Policy(snapshot_every=50), Limits(), lambda reason: None)
        models.open()
        model = await models.create("m", "arow", {}, "device")
        model.state.learner.most = 2
        for i in range(120):
            await send(model, {**instance(i), "key": f"d{i % 7}"})
        await model.drain()
        abandon(models)
        return model.state

    state = asyncio.run(main())
    found, recovery = stored(tmp_path, "m")
    assert recovery.snapshot >= 50
    assert fingerprint(found) == fingerprint(state)


def test_too_many_pending_changes_are_rejected_with_a_time_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varifold.serve.core.group_commit.MOST_PENDING", 2)

    async def work(models: Models, model: Model) -> None:
        accepted = [send_now(model, instance(i)) for i in range(2)]
        with pytest.raises(BusyError, match="2 changes wait for the disk") as error:
            send_now(model, instance(2))
        response = error_response(error.value, error.value.status)
        assert (response.status, dict(response.headers)[b"retry-after"]) == (429, b"1")
        await asyncio.gather(*accepted)
        await send_now(model, instance(2))

    state = run(tmp_path, work)
    assert state.seq == 3


def test_too_many_bytes_that_wait_for_the_disk_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varifold.serve.core.group_commit.MOST_PENDING_BYTES", 50)

    async def work(models: Models, model: Model) -> None:
        for i in range(3):  # each is written before the next comes
            accepted = send_now(model, instance(i))
            with pytest.raises(BusyError, match="1 changes wait for the disk"):
                send_now(model, instance(i))
            await accepted

    assert run(tmp_path, work).seq == 3


def send_now(model: Model, body: Any) -> asyncio.Future[Any]:
    return model.submit(body, orjson.dumps(body))


@pytest.mark.parametrize("fsync", ["always", "never"])
def test_other_ways_to_sync_recover_as_well(tmp_path: Path, fsync: str) -> None:
    state = run(tmp_path, mixed_work, fsync=fsync)
    assert fingerprint(stored(tmp_path, "m")[0]) == fingerprint(state)


@pytest.mark.parametrize(("fsync", "commits"), [("group", 1), ("always", 4)])
def test_always_writes_each_change_in_its_own_transaction(tmp_path: Path, fsync: str, commits: int) -> None:
    async def work(models: Models, model: Model) -> None:
        await asyncio.gather(*(send_now(model, instance(i)) for i in range(4)))
        assert models.committer.commits == commits

    run(tmp_path, work, fsync=fsync)


def test_answers_of_learners_with_coverages_have_intervals_or_sets() -> None:
    number = learners.make("arowregressor", {"coverages": [0.5, 0.9]})
    assert learners.predict(number, {"a": 1.0})["intervals"] == {"0.5": [None, None], "0.9": [None, None]}
    for step in range(50):
        number.learn_one({"a": float(step % 5)}, float(step % 7))
    found = learners.predict(number, {"a": 1.0})
    assert found["intervals"]["0.9"] == list(number.predict_interval_one({"a": 1.0}))
    label = learners.make("arow", {"coverages": [0.9]})
    for step in range(50):
        label.learn_one({"a": float(step % 5)}, ("low", "high")[step % 5 > 2])
    found = learners.predict(label, {"a": 4.0})
    assert set(found["sets"]["0.9"]) == label.predict_set_one({"a": 4.0})
    assert "sets" not in learners.predict(learners.make("arow", {}), {"a": 4.0})


def test_events_go_on_after_a_restart(tmp_path: Path) -> None:
    def numbers(clean: bool) -> list[int]:
        async def main() -> list[int]:
            models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
            models.events.add("m", "kind", "text")
            await models.committer.drain()
            if clean:
                await models.stop()
            else:
                abandon(models)
            return [event["number"] for event in models.events.latest]

        return asyncio.run(main())

    assert numbers(True) == [1]
    assert numbers(False) == [1, 2]
    assert numbers(True) == [1, 2, 1_003]


def test_a_large_model_is_not_packed_all_the_time(tmp_path: Path) -> None:
    """A replay may take three times as long as a snapshot takes."""

    async def work(models: Models, model: Model) -> None:
        model._snapshot_seconds, model._replay = 10.0, 29.0
        await send(model, instance(0))
        assert model._snapshotting is None
        model._replay = 31.0
        await send(model, instance(1))
        await model.drain()
        assert model.snapshots == 1
        assert 0.0 < model._snapshot_seconds < 10.0

    run(tmp_path, work)


@pytest.mark.parametrize("method", ["arow", "autoregressor"])
def test_a_batch_equals_its_rows_one_by_one(method: str) -> None:
    numeric = method == "autoregressor"
    bodies: list[dict[str, Any]] = [
        {"x": {"a": float(i), f"b{i % 7}": 1.0}, "y": float(i) if numeric else f"label {i % 3}"} for i in range(60)
    ]
    bodies[9]["x"]["a"] = float("inf")  # rejected in the middle of plain rows
    bodies[20]["w"] = 2.0
    bodies[30]["y"] = None
    bodies[40]["predict"] = True
    del bodies[50]["y"]
    rows = [(body, orjson.dumps(body)) for body in bodies]
    together, apart = (ModelState("m", learners.make(method, {}), Limits(), "0") for _ in range(2))
    results = together.apply_rows(rows)
    for row, result in zip(rows, results, strict=True):
        if "error" in result:
            with pytest.raises(VarifoldError, match=re.escape(result["error"])):
                apart.apply(*row)
        else:
            assert apart.apply(*row) == result
    assert [i for i, result in enumerate(results) if "error" in result] == [9]
    assert learners.digest(together.learner) == learners.digest(apart.learner)
    assert together.monitor.dump() == apart.monitor.dump()
    assert together.take_unwritten() == apart.take_unwritten()
    assert together.budget.used > 0.999 * apart.budget.used  # what the system adds to a request for memory differs


def test_a_batch_stops_at_the_budget_row_by_row() -> None:
    rows = [({"x": {f"{i} {'n' * 200}": 1.0}, "y": i % 2}, b"{}") for i in range(3_000)]
    state = ModelState("m", learners.make("arow", {}), Limits(), budget=ServerBudget(1 << 20, 400 << 10))
    results = state.apply_rows(rows)
    assert 100 < state.learned < 3_000
    assert results[-1]["status"] == 507
    assert state.learner.steps == state.seq == state.learned == sum("seq" in result for result in results)


def test_long_names_in_a_batch_count_as_they_do_row_by_row() -> None:
    bodies = [{"x": {f"{i} {'n' * 5_000}": 1.0}, "y": i % 2} for i in range(400)]
    rows = [(body, orjson.dumps(body)) for body in bodies]
    together, apart = (
        ModelState("m", learners.make("arow", {}), Limits(), budget=ServerBudget(1 << 20, 400 << 10)) for _ in range(2)
    )
    together.apply_rows(rows)
    for row in rows:
        with contextlib.suppress(BudgetError):
            apart.apply(*row)
    assert together.learned == apart.learned < 200


def test_each_row_of_a_batch_is_looked_at_a_few_times_only() -> None:
    """Rows that are more than an instance with a label, as `follow` has them, do not begin the batch again."""

    class Rows(list[Any]):
        seen = 0

        def __iter__(self) -> Any:
            for row in super().__iter__():
                self.seen += 1
                yield row

        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            self.seen += len(found) if isinstance(index, slice) else 1
            return found

    rows = Rows(({"x": {"a": float(i)}, "y": i % 2, "predict": True}, b"{}") for i in range(200))
    ModelState("m", learners.make("arow", {}), Limits()).apply_rows(rows)
    assert rows.seen <= 2 * len(rows)


def test_a_state_is_small_by_its_names_too() -> None:
    """Names are copied one by one: 15,000 took 23 ms, in which nothing else was served. What waits is not copied."""

    def state_of(features: int) -> ModelState:
        state = ModelState("m", learners.make("arow", {}), Limits())
        state.learner.learn_one({f"feature {i}": 1.0 for i in range(features)}, "a")
        return state

    kept = state_of(10)
    for i in range(3_000):
        kept.apply({"x": {"a": float(i)}, "keep": True}, b"{}")
    assert snapshot._is_small(kept)
    assert not snapshot._is_small(state_of(10_000))
