"""Nothing hangs: snapshots that fail, models that stop, models that cannot be recovered."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.following import stored
from tests.serve.server import instance
from varifold import AROW, PerKey
from varifold.cli import main
from varifold.ensemble._spill_file import SpillFile
from varifold.serve.core import snapshot
from varifold.serve.core.database import Database
from varifold.serve.core.errors import DiskError, StoppedError
from varifold.serve.core.models import Model, Models, Policy, lock_folder
from varifold.serve.core.state import Limits, ModelState, Recovery
from varifold.serve.http import server_routes
from varifold.serve.http.app import App, BodyLimits
from varifold.serve.http.messages import Request
from varifold.serve.http.tokens import NOTHING
from varifold.serve.server import _freeze_garbage

PATIENCE = 10.0


def run(folder: Path, work: Callable[[Models, Model], Awaitable[None]], **policy: Any) -> None:
    """Work on a model `m`, then stop; a wait that does not end fails the test."""

    async def main() -> None:
        models = Models(folder, Policy(**policy), Limits(), lambda reason: None)
        models.open()
        model = models["m"] if "m" in models else await models.create("m", "arow", {})
        async with asyncio.timeout(PATIENCE):
            await work(models, model)
            await models.stop()

    asyncio.run(main())


async def send(model: Model, body: Any) -> Any:
    if isinstance(body, bytes):
        return await model.restore(body)
    return await model.submit(body, orjson.dumps(body))


def reopened(folder: Path) -> tuple[ModelState, Recovery]:
    return stored(folder, "m")


@pytest.mark.parametrize("error", [OSError(11, "no process can be started"), TypeError("not JSON"), MemoryError()])
def test_a_snapshot_that_cannot_begin_does_not_hold_up_the_model(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    async def work(models: Models, model: Model) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "begin", fail)
            for i in range(9):
                await send(model, instance(i))
                await model.drain()
        assert "snapshot" in [event["kind"] for event in models.events.latest]
        monkeypatch.setattr(snapshot, "begin", fail)

    run(tmp_path, work, snapshot_every=4)
    state, recovery = reopened(tmp_path)
    assert (recovery.snapshot, state.learner.steps) == (0, 9)


def test_an_error_in_a_snapshot_that_has_begun_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Iterator[bytes]:
        yield b"{}"
        raise ValueError("broken")

    async def work(models: Models, model: Model) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "begin", fail)
            for i in range(9):
                await send(model, instance(i))
                await model.drain()
        assert "snapshot" in [event["kind"] for event in models.events.latest]

    run(tmp_path, work, snapshot_every=4)
    assert reopened(tmp_path)[0].learner.steps == 9


def test_one_model_that_cannot_be_stopped_leaves_the_others_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> None:
        raise OSError("the disk is gone")

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        bad, good = await models.create("bad", "arow", {}), await models.create("m", "arow", {})
        await send(good, instance(0))
        monkeypatch.setattr(bad, "stop", refuse)
        with pytest.raises(OSError, match="the disk is gone"):
            await models.stop()
        os.close(lock_folder(tmp_path))  # the folder is free again

    asyncio.run(main())
    _, recovery = reopened(tmp_path)
    assert (recovery.snapshot, recovery.replayed) == (1, 0)


@pytest.mark.parametrize("label", [b"up", 2**70, ("a", 1), 0.1, True])
def test_an_answer_of_any_type_of_label_is_in_the_snapshot(tmp_path: Path, label: Any) -> None:
    other = AROW()
    other.learn_one({"a": 1.0}, label)

    async def work(models: Models, model: Model) -> None:
        await send(model, other.to_bytes())
        await send(model, {"x": {"a": 1.0}, "keep": True})

    run(tmp_path, work)
    state, recovery = reopened(tmp_path)
    assert recovery.replayed == 0
    kept = state.waiting.get(1)
    assert kept is not None
    assert (kept.prediction, type(kept.prediction)) == (label, type(label))


def test_an_answer_before_any_label_is_stored(tmp_path: Path) -> None:
    async def work(models: Models, model: Model) -> None:
        await send(model, {"x": {"a": 1.0}, "keep": True})

    run(tmp_path, work)
    kept = reopened(tmp_path)[0].waiting.get(1)
    assert kept is not None
    assert kept.prediction is None


@pytest.mark.parametrize("fsync", ["group", "always"])
def test_a_model_that_fails_accepts_no_more_changes(
    tmp_path: Path, fsync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has learned before is acknowledged and stored; what comes after is rejected."""

    async def work(models: Models, model: Model) -> None:
        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        first = asyncio.ensure_future(send(model, instance(0)))
        await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            patch.setattr(model.state, "apply", fail)
            for _ in range(2):
                with pytest.raises(StoppedError, match="ZeroDivisionError"):
                    await send(model, instance(1))
        assert await first == {"seq": 1}
        with pytest.raises(StoppedError, match="ZeroDivisionError"):
            await send(model, instance(2))

    run(tmp_path, work, fsync=fsync)
    assert reopened(tmp_path)[0].seq == 1


def test_changes_on_their_way_are_rejected_when_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(models: Models, model: Model) -> None:
        started, go_on = threading.Event(), threading.Event()

        def fail(*_: Any) -> None:
            started.set()
            go_on.wait(PATIENCE)
            raise DiskError("the disk is full")

        other = await models.create("n", "arow", {})
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", fail)
            first = asyncio.ensure_future(send(model, instance(0)))
            await asyncio.to_thread(started.wait, PATIENCE)
            later = [asyncio.ensure_future(send(each, instance(1))) for each in (model, other)]
            await asyncio.sleep(0)
            go_on.set()
            found = await asyncio.gather(first, *later, return_exceptions=True)
        assert [str(error) for error in found] == ["the disk is full"] * 3

    run(tmp_path, work)
    assert reopened(tmp_path)[0].seq == 0


def test_a_disk_that_is_full_when_learners_are_moved_to_it_stops_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), failed.append)
        models.open()
        model = await models.create("m", "arow", {}, "device")
        model.state.learner.most = 2

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(SpillFile, "put", full)
        for i in range(2):
            await send(model, {**instance(i), "key": f"d{i}"})
        for _ in range(2):
            with pytest.raises(StoppedError, match="No space left on device"):
                await send(model, {**instance(3), "key": "d3"})
        await models.stop()

    asyncio.run(main())
    assert len(failed) == 1
    assert "free space" in failed[0]
    assert reopened(tmp_path)[0].seq == 2


@pytest.mark.parametrize("field", ["device", 5])
def test_a_model_by_key_keeps_instances_whatever_names_its_key(tmp_path: Path, field: str | int) -> None:
    async def work(models: Models, model: Model) -> None:
        await send(model, PerKey(AROW(), key=field).to_bytes())
        for key in ("a", "b"):
            await send(model, {"x": {"f": 1.0}, "key": key, "keep": True, "id": key})
        await send(model, {"id": "a", "y": "up"})

    run(tmp_path, work)
    state, recovery = reopened(tmp_path)
    assert recovery.replayed == 0
    state.apply({"id": "b", "y": "down"}, b"")
    assert state.learner.keys == ["a", "b"]
    assert state.predict({"x": {"f": 1.0}, "key": "b"})["label"] == "down"


def test_a_model_that_cannot_be_recovered_is_refused_and_the_others_are_served(tmp_path: Path) -> None:
    async def nothing(models: Models, model: Model) -> None:
        await models.create("n", "arow", {})

    async def work(models: Models, model: Model) -> None:
        with pytest.raises(StoppedError, match=r"not be recovered: .*a snapshot of 'n' is missing.* or delete it"):
            models["n"]
        await send(model, instance(0))
        await models.delete("n")
        assert "n" not in models

    run(tmp_path, nothing)
    database = Database(tmp_path)
    database._db.execute("DELETE FROM snapshots WHERE model = (SELECT id FROM models WHERE name = 'n')")
    database.close()
    run(tmp_path, work)
    database = Database(tmp_path)
    assert [row.name for row in database.models()] == ["m"]
    database.close()


@pytest.mark.parametrize(
    ("host", "said"), [("127.0.0.1", "in use by another program"), ("256.0.0.1", "cannot listen on 256.0.0.1")]
)
def test_an_address_that_cannot_be_had_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str, said: str
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("write writewritewritewrite")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["--dir", str(tmp_path / "state"), "--host", host, "--port", port, "--token-file", str(tokens)]
        assert main(["serve", *options]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_what_is_there_at_the_start_is_left_alone_by_the_collector() -> None:
    """A full collection through all libraries would hold up the server for about 50 ms."""
    _freeze_garbage()
    try:
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


def test_a_server_whose_snapshots_fail_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(state: ModelState) -> Any:
        raise OSError(11, "no process can be started")

    async def work(models: Models, model: Model) -> None:
        app = App(models, None, BodyLimits())
        ready = server_routes.readyz
        request = Request({}, None, None)  # type: ignore[arg-type]
        assert (await ready(app, request)).status == 200
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "begin", fail)
            for i in range(5):
                await send(model, instance(i))
            await model.drain()
        response = await ready(app, request)
        assert response.status == 503
        assert "a snapshot could not be written (no process can be started)" in response.body.decode()
        request.grant = NOTHING
        assert (await ready(app, request)).body == b'{"status":"stopped","reason":null,"models":{}}'
        for i in range(5):
            await send(model, instance(i))
        await model.drain()
        assert (await ready(app, request)).status == 200

    run(tmp_path, work, snapshot_every=4)
