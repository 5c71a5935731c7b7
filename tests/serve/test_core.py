"""State, snapshots and recovery without a network."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.server import instance
from varifold.base.atomic import publish
from varifold.serve.core import learners, snapshot
from varifold.serve.core.errors import (
    BusyError,
    JournalError,
    RefusedError,
    StateError,
    StoppedError,
)
from varifold.serve.core.group_commit import Writer
from varifold.serve.core.journal import KEEP, LABEL, LEARN, RESTORE, ROWS
from varifold.serve.core.models import Models
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store
from varifold.serve.http.messages import refusal

METHODS = ["arow", "auto", "orf3v", "ovfm"]


def fingerprint(state: ModelState) -> tuple[str, dict[str, Any]]:
    return learners.digest(state.learner), state.dump()


def open_store(folder: Path) -> Store:
    return Store.open(folder / "models" / "m", Limits(), Policy())


async def send(writer: Writer, kind: int, body: Any) -> Any:
    payload = body if kind == RESTORE else orjson.dumps(body)
    return await writer.submit(kind, payload, body)


def run(folder: Path, work: Callable[[Models, Writer], Any], method: str = "arow", **policy: Any) -> ModelState:
    """Do some work on a model and leave as a crash would: nothing is stopped or closed cleanly."""

    async def main() -> ModelState:
        models = Models(folder, Policy(**policy), Limits(), lambda reason: None)
        models.open()
        writer = models["m"] if "m" in models else models.create("m", method, {})
        await work(models, writer)
        await writer.drain()
        os.close(models._lock)
        return writer.store.state

    return asyncio.run(main())


async def mixed_work(models: Models, writer: Writer) -> None:
    """Learns, kept predictions, labels, duplicates, refusals and rows, some of them in one group."""
    start = writer.store.state.seq
    for i in range(start, start + 30):
        await asyncio.gather(*(send(writer, LEARN, {**instance(4 * i + k), "id": f"a{i}-{k % 3}"}) for k in range(4)))
        kept = await send(writer, KEEP, {"x": instance(i)["x"], "keep": True, "id": f"k{i}"})
        if i % 2:
            await send(writer, LABEL, {"id": kept["id"], "y": "up"})
        with pytest.raises(RefusedError):
            await send(writer, LEARN, {"x": {"a": "b", "a=b": 1.0}, "y": "up"})
        rows = [instance(1000 + i), {"x": instance(i)["x"], "keep": True}, {"id": "nobody", "y": "up"}]
        await writer.submit(ROWS, b"\n".join(map(orjson.dumps, rows)), rows, len(rows))


@pytest.mark.parametrize("method", METHODS)
def test_recovery_is_equal_to_the_bit(tmp_path: Path, method: str) -> None:
    state = run(tmp_path, mixed_work, method)
    store = open_store(tmp_path)
    assert store.recovery is not None
    assert (store.recovery.snapshot, store.recovery.replayed) == (0, state.seq)
    assert fingerprint(store.state) == fingerprint(state)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("method", ["arow", "auto"])
def test_recovery_from_a_snapshot_and_the_journal_after_it(
    tmp_path: Path, method: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_is_small", lambda state: small)
    state = run(tmp_path, mixed_work, method, snapshot_every=150)
    store = open_store(tmp_path)
    assert store.recovery is not None
    assert store.recovery.snapshot >= 150
    assert 0 < store.recovery.replayed < 300
    assert fingerprint(store.state) == fingerprint(state)
    assert len(list((tmp_path / "models" / "m").glob("snapshot-*"))) == 1


def test_recovery_goes_on_and_recovers_again(tmp_path: Path) -> None:
    run(tmp_path, mixed_work)
    run(tmp_path, mixed_work)
    state = run(tmp_path, mixed_work, snapshot_every=200)
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


def test_a_crash_between_snapshot_and_cut_of_the_journal_loses_nothing(tmp_path: Path) -> None:
    """The new snapshot is there, the old journals are too: changes are not applied twice."""

    async def work(models: Models, writer: Writer) -> None:
        await mixed_work(models, writer)
        store = writer.store
        path = store.rotate()
        publish(snapshot.write_part(path, snapshot.pack(store.state)), path)
        await send(writer, LEARN, instance(7))

    state = run(tmp_path, work)
    store = open_store(tmp_path)
    assert fingerprint(store.state) == fingerprint(state)
    assert store.recovery is not None
    assert store.recovery.replayed == 1


def test_a_torn_tail_is_cut_and_the_rest_recovered(tmp_path: Path) -> None:
    state = run(tmp_path, mixed_work)
    path = max((tmp_path / "models" / "m").glob("journal-*"))
    path.write_bytes(path.read_bytes() + b"VfJ")
    store = open_store(tmp_path)
    assert store.recovery is not None
    assert store.recovery.cut == 3
    assert fingerprint(store.state) == fingerprint(state)


def test_a_journal_of_another_build_is_refused_unless_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = run(tmp_path, mixed_work)
    monkeypatch.setattr("varifold.serve.core.store.identity", lambda: {"version": "9.9", "build": "other"})
    with pytest.raises(StateError, match=r"build .* stop it cleanly"):
        open_store(tmp_path)
    monkeypatch.undo()
    store = open_store(tmp_path)
    store.snapshot_now()
    monkeypatch.setattr("varifold.serve.core.store.identity", lambda: {"version": "9.9", "build": "other"})
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


def test_a_damaged_snapshot_and_a_missing_journal_are_reported(tmp_path: Path) -> None:
    run(tmp_path, mixed_work)
    run(tmp_path, mixed_work)
    folder = tmp_path / "models" / "m"
    first = min(folder.glob("journal-*"))
    kept = first.read_bytes()
    first.unlink()
    with pytest.raises(StateError, match="a file is missing"):
        open_store(tmp_path)
    first.write_bytes(kept)
    (path,) = folder.glob("snapshot-*")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateError, match=r"snapshot-.* is damaged"):
        open_store(tmp_path)


def test_a_refused_change_leaves_the_state(tmp_path: Path) -> None:
    async def work(models: Models, writer: Writer) -> None:
        await send(writer, LEARN, {"x": {"valve": "open"}, "y": "up"})
        before = learners.digest(writer.store.state.learner)
        with pytest.raises(RefusedError, match="valve=open"):
            await send(writer, LEARN, {"x": {"valve=open": 1.0}, "y": "up"})
        assert learners.digest(writer.store.state.learner) == before

    run(tmp_path, work)


def test_a_label_that_is_refused_leaves_the_instance_waiting(tmp_path: Path) -> None:
    async def work(models: Models, writer: Writer) -> None:
        kept = await send(writer, KEEP, {"x": {"a": "b"}, "keep": True})
        await send(writer, LEARN, {"x": {"a=b": 1.0}, "y": "up"})
        with pytest.raises(RefusedError, match="'a=b'"):
            await send(writer, LABEL, {"id": kept["id"], "y": "up"})
        assert (len(writer.store.state.waiting), writer.store.state.seq) == (1, 2)

    run(tmp_path, work)


def test_ids_are_remembered_in_bounded_memory() -> None:
    state = ModelState("m", learners.make("arow", {}), Limits(ids=3))
    for i in range(4):
        state.apply(LEARN, {"x": {"a": 1.0}, "y": "up", "id": f"i{i}"})
    assert state.learner.steps == 4
    assert state.apply(LEARN, {"x": {"a": 1.0}, "y": "up", "id": "i3"}) == {"seq": 4, "duplicate": True}
    assert state.learner.steps == 4
    assert state.apply(LEARN, {"x": {"a": 1.0}, "y": "up", "id": "i0"}) == {"seq": 6}


def test_a_kept_instance_is_learned_when_it_comes_again_with_its_label(tmp_path: Path) -> None:
    async def work(models: Models, writer: Writer) -> None:
        await send(writer, KEEP, {"x": {"a": 1.0}, "keep": True, "id": "i"})
        body = {"x": {"a": 1.0}, "y": "up", "id": "i", "w": 2.0}
        assert await send(writer, LEARN, body) == {"seq": 2}
        assert (await send(writer, LEARN, body))["duplicate"]

    state = run(tmp_path, work)
    plain = learners.make("arow", {})
    plain.learn_one({"a": 1.0}, "up", 2.0)
    assert (learners.digest(state.learner), len(state.waiting)) == (learners.digest(plain), 0)
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


def test_two_changes_with_one_id_in_one_group_are_learned_once(tmp_path: Path) -> None:
    async def work(models: Models, writer: Writer) -> None:
        body = {**instance(1), "id": "same"}
        answers = await asyncio.gather(*(send(writer, LEARN, body) for _ in range(5)))
        assert [a["seq"] for a in answers] == [1] * 5
        assert writer.store.state.learner.steps == 1

    run(tmp_path, work)


def test_nothing_is_applied_or_acknowledged_before_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = os.fdatasync

    def synced(fd: int) -> None:
        real(fd)
        order.append("synced")

    monkeypatch.setattr(os, "fdatasync", synced)

    async def work(models: Models, writer: Writer) -> None:
        apply = writer.store.state.apply
        monkeypatch.setattr(writer.store.state, "apply", lambda *a: (order.append("applied"), apply(*a))[1])
        for i in range(3):
            await send(writer, LEARN, instance(i))
            order.append("acknowledged")

    run(tmp_path, work)
    assert order == ["synced", "applied", "acknowledged"] * 3


def test_a_journal_that_cannot_be_written_stops_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), reasons.append)
        models.open()
        writer, other = models.create("m", "arow", {}), models.create("n", "arow", {})
        await send(writer, LEARN, instance(0))
        before = learners.digest(writer.store.state.learner)

        def full(frame: bytes) -> None:
            raise JournalError("No space left on device")

        monkeypatch.setattr(writer.store.journal, "write", full)
        failures = await asyncio.gather(*(send(writer, LEARN, instance(i)) for i in range(3)), return_exceptions=True)
        assert [type(f) for f in failures] == [StoppedError] * 3
        assert learners.digest(writer.store.state.learner) == before
        for w in (writer, other):
            with pytest.raises(StoppedError, match="No space left"):
                await send(w, LEARN, instance(9))
        os.close(models._lock)

    asyncio.run(main())
    assert reasons == ["No space left on device"]


def test_a_snapshot_that_cannot_be_written_is_an_event_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot, "_is_small", lambda state: True)
    kinds = []

    async def work(models: Models, writer: Writer) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "write_part", full)
            await mixed_work(models, writer)
            await writer.drain()
        kinds.extend(event["kind"] for event in models.events.latest)

    state = run(tmp_path, work, snapshot_every=100)
    assert "snapshot" in kinds
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


def test_one_process_per_folder(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from varifold.serve.core.models import Models;"
        "from varifold.serve.core.store import Policy; from varifold.serve.core.state import Limits\n"
        "try: Models(pathlib.Path(sys.argv[1]), Policy(), Limits(), print)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("StateError")
    assert "in use by another process" in found.stdout
    os.close(models._lock)


def test_restore_replaces_the_learner_durably(tmp_path: Path) -> None:
    other = learners.make("olvf", {})
    other.learn_one({"a": 1.0}, "up")

    async def work(models: Models, writer: Writer) -> None:
        await mixed_work(models, writer)
        await send(writer, RESTORE, learners.to_bytes(other))
        await send(writer, LEARN, instance(3))

    state = run(tmp_path, work)
    assert state.learner.steps == 2
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


@pytest.mark.parametrize("small", [True, False])
def test_recovery_of_models_by_key(tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners that are on disk while a child process writes the snapshot are in it as they were."""
    monkeypatch.setattr(snapshot, "_is_small", lambda state: small)

    async def work(models: Models, writer: Writer) -> None:
        writer.store.state.learner.most = 2
        for i in range(120):
            await send(writer, LEARN, {**instance(i), "key": f"d{i % 7}"})

    async def main() -> ModelState:
        models = Models(tmp_path, Policy(snapshot_every=50), Limits(), lambda reason: None)
        models.open()
        writer = models.create("m", "arow", {}, "device")
        await work(models, writer)
        await writer.drain()
        os.close(models._lock)
        return writer.store.state

    state = asyncio.run(main())
    store = open_store(tmp_path)
    assert store.recovery is not None
    assert store.recovery.snapshot >= 50
    assert fingerprint(store.state) == fingerprint(state)


def test_too_many_pending_changes_are_refused_with_a_time_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varifold.serve.core.group_commit.MOST_PENDING", 2)

    async def work(models: Models, writer: Writer) -> None:
        taken = [send_now(writer, instance(i)) for i in range(2)]
        with pytest.raises(BusyError, match="2 changes wait for the disk") as error:
            send_now(writer, instance(2))
        response = refusal(error.value, error.value.status)
        assert (response.status, dict(response.headers)[b"retry-after"]) == (429, b"1")
        await asyncio.gather(*taken)
        await send_now(writer, instance(2))

    state = run(tmp_path, work)
    assert state.seq == 3


def send_now(writer: Writer, body: Any) -> asyncio.Future[Any]:
    return writer.submit(LEARN, orjson.dumps(body), body)


@pytest.mark.parametrize("fsync", ["always", "never"])
def test_other_ways_to_sync_recover_as_well(tmp_path: Path, fsync: str) -> None:
    state = run(tmp_path, mixed_work, fsync=fsync)
    assert fingerprint(open_store(tmp_path).state) == fingerprint(state)


def test_answers_of_learners_with_coverages_have_intervals_or_sets() -> None:
    number = learners.make("arowregressor", {"coverages": [0.5, 0.9]})
    assert learners.answer(number, {"a": 1.0})["intervals"] == {"0.5": [None, None], "0.9": [None, None]}
    for step in range(50):
        number.learn_one({"a": float(step % 5)}, float(step % 7))
    found = learners.answer(number, {"a": 1.0})
    assert found["intervals"]["0.9"] == list(number.predict_interval_one({"a": 1.0}))
    label = learners.make("arow", {"coverages": [0.9]})
    for step in range(50):
        label.learn_one({"a": float(step % 5)}, ("low", "high")[step % 5 > 2])
    found = learners.answer(label, {"a": 4.0})
    assert set(found["sets"]["0.9"]) == label.predict_set_one({"a": 4.0})
    assert "sets" not in learners.answer(learners.make("arow", {}), {"a": 4.0})
