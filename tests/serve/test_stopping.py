"""Nothing hangs: snapshots that fail, models that stop, models that cannot be recovered."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.server import instance
from varifold import AROW, PerKey
from varifold.cli import main
from varifold.serve.core import learners, snapshot
from varifold.serve.core.errors import StoppedError
from varifold.serve.core.group_commit import Writer
from varifold.serve.core.journal import KEEP, LABEL, LEARN, RESTORE
from varifold.serve.core.models import Models, lock_folder
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store
from varifold.serve.server import _freeze_garbage

PATIENCE = 10.0


def run(folder: Path, work: Callable[[Models, Writer], Awaitable[None]], **policy: Any) -> None:
    """Work on a model `m`, then stop; a wait that does not end fails the test."""

    async def main() -> None:
        models = Models(folder, Policy(**policy), Limits(), lambda reason: None)
        models.open()
        writer = models["m"] if "m" in models else models.create("m", "arow", {})
        async with asyncio.timeout(PATIENCE):
            await work(models, writer)
            await models.stop()

    asyncio.run(main())


async def send(writer: Writer, kind: int, body: Any) -> Any:
    return await writer.submit(kind, body if kind == RESTORE else orjson.dumps(body), body)


def reopened(folder: Path) -> Store:
    return Store.open(folder / "models" / "m", Limits(), Policy())


@pytest.mark.parametrize("error", [OSError(11, "no process can be started"), TypeError("not JSON"), MemoryError()])
def test_a_snapshot_that_cannot_begin_does_not_hold_up_the_model(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    async def work(models: Models, writer: Writer) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "begin", fail)
            for i in range(9):
                await send(writer, LEARN, instance(i))
                await writer.drain()
        assert "snapshot" in [event["kind"] for event in models.events.latest]
        monkeypatch.setattr(snapshot, "pack", fail)

    run(tmp_path, work, snapshot_every=4)
    store = reopened(tmp_path)
    assert store.recovery is not None
    assert (store.recovery.snapshot, store.state.learner.steps) == (0, 9)


def test_an_error_in_a_snapshot_that_has_begun_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Path:
        raise ValueError("broken")

    async def work(models: Models, writer: Writer) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "begin", lambda *_: fail)
            for i in range(9):
                await send(writer, LEARN, instance(i))
                await writer.drain()
        assert "snapshot" in [event["kind"] for event in models.events.latest]

    run(tmp_path, work, snapshot_every=4)
    assert reopened(tmp_path).state.learner.steps == 9


def test_one_model_that_cannot_be_stopped_leaves_the_others_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> None:
        raise OSError("the disk is gone")

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        bad, good = models.create("bad", "arow", {}), models.create("m", "arow", {})
        await send(good, LEARN, instance(0))
        monkeypatch.setattr(bad, "stop", refuse)
        with pytest.raises(OSError, match="the disk is gone"):
            await models.stop()
        os.close(lock_folder(tmp_path))  # the folder is free again

    asyncio.run(main())
    store = reopened(tmp_path)
    assert store.recovery is not None
    assert (store.recovery.snapshot, store.recovery.replayed) == (1, 0)


@pytest.mark.parametrize("label", [b"up", 2**70, ("a", 1), 0.1, True])
def test_an_answer_of_any_type_of_label_is_in_the_snapshot(tmp_path: Path, label: Any) -> None:
    other = AROW()
    other.learn_one({"a": 1.0}, label)

    async def work(models: Models, writer: Writer) -> None:
        await send(writer, RESTORE, other.to_bytes())
        await send(writer, KEEP, {"x": {"a": 1.0}, "keep": True})

    run(tmp_path, work)
    store = reopened(tmp_path)
    assert store.recovery is not None
    assert store.recovery.replayed == 0
    kept = store.state.waiting.get(1)
    assert kept is not None
    assert (kept.answer, type(kept.answer)) == (label, type(label))


def test_an_answer_before_any_label_is_in_the_snapshot() -> None:
    state = ModelState("m", learners.make("arow", {}), Limits())
    state.apply(KEEP, {"x": {"a": 1.0}, "keep": True})
    found = ModelState.restored(orjson.loads(orjson.dumps(state.dump())), state.learner, Limits())
    assert found.waiting.get(1) == state.waiting.get(1)


@pytest.mark.parametrize("fsync", ["group", "always"])
def test_changes_that_wait_when_a_model_stops_are_refused(
    tmp_path: Path, fsync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(models: Models, writer: Writer) -> None:
        write, started, go_on = writer.store.journal.write, threading.Event(), threading.Event()

        def slow(frame: bytes) -> None:
            write(frame)
            started.set()
            go_on.wait(PATIENCE)

        def fail(*_: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(writer.store.journal, "write", slow)
        monkeypatch.setattr(writer.store.state, "apply", fail)
        first = asyncio.ensure_future(send(writer, LEARN, instance(0)))
        await asyncio.to_thread(started.wait, PATIENCE)
        later = [asyncio.ensure_future(send(writer, LEARN, instance(i))) for i in (1, 2)]
        await asyncio.sleep(0)
        go_on.set()
        found = await asyncio.gather(first, *later, return_exceptions=True)
        assert [type(error) for error in found] == [StoppedError] * 3
        assert "ZeroDivisionError" in str(found[-1])

    run(tmp_path, work, fsync=fsync)
    assert reopened(tmp_path).state.seq == 1


def test_changes_of_the_other_models_are_refused_when_a_journal_fails(tmp_path: Path) -> None:
    async def work(models: Models, writer: Writer) -> None:
        waits = asyncio.ensure_future(send(writer, LEARN, instance(0)))
        await asyncio.sleep(0)
        models._fatal("the disk is full")
        with pytest.raises(StoppedError, match="the disk is full"):
            await waits

    run(tmp_path, work)
    assert reopened(tmp_path).state.seq == 0


@pytest.mark.parametrize("field", ["device", 5])
def test_a_model_by_key_keeps_instances_whatever_names_its_key(tmp_path: Path, field: str | int) -> None:
    async def work(models: Models, writer: Writer) -> None:
        await send(writer, RESTORE, PerKey(AROW(), key=field).to_bytes())
        for key in ("a", "b"):
            await send(writer, KEEP, {"x": {"f": 1.0}, "key": key, "keep": True, "id": key})
        await send(writer, LABEL, {"id": "a", "y": "up"})

    run(tmp_path, work)
    store = reopened(tmp_path)
    assert store.recovery is not None
    assert store.recovery.replayed == 0
    store.state.apply(LABEL, {"id": "b", "y": "down"})
    assert store.state.learner.keys == ["a", "b"]
    assert store.state.predict({"x": {"f": 1.0}, "key": "b"})["label"] == "down"


def test_a_model_that_cannot_be_recovered_is_refused_and_the_others_are_served(tmp_path: Path) -> None:
    async def nothing(models: Models, writer: Writer) -> None:
        models.create("n", "arow", {})

    async def work(models: Models, writer: Writer) -> None:
        with pytest.raises(StoppedError, match=r"'n' could not be recovered: .*no snapshot.* or delete it"):
            models["n"]
        await send(writer, LEARN, instance(0))
        await models.delete("n")
        assert "n" not in models

    run(tmp_path, nothing)
    for path in (tmp_path / "models" / "n").glob("snapshot-*"):
        path.unlink()
    run(tmp_path, work)
    assert not (tmp_path / "models" / "n").exists()


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
