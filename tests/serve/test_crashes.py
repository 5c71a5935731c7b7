"""A real server process is killed, its files are damaged, its disk is full: what was acknowledged is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.server import Server, instance
from varifold.serve.core import learners
from varifold.serve.core.snapshot import unpack
from varifold.serve.core.state import Limits
from varifold.serve.core.store import Policy, Store

KILLS = int(os.environ.get("VARIFOLD_KILLS", "3"))


class Sender(threading.Thread):
    """Learns, keeps and labels until the connection breaks; remembers what was acknowledged."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__()
        self.url = url
        self.number = number
        self.learned: list[str] = []
        self.kept: list[str] = []
        self.labelled: list[str] = []
        self.unsure: set[str] = set()

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=10.0) as client:
            try:
                for i in range(100_000):
                    self._one(client, i)
            except httpx.TransportError:
                return

    def _one(self, client: httpx.Client, i: int) -> None:
        given = f"{self.number}-{i}"
        self.unsure = {given}
        assert client.post("/models/m/learn", json={**instance(i), "id": given}).status_code == 200
        self.learned.append(given)
        if i % 3 == 0:
            kept = client.post("/models/m/predict", json={"x": instance(i)["x"], "keep": True}).json()["id"]
            self.kept.append(kept)
            if i % 2 == 0:
                self.unsure = {kept}
                assert client.post(f"/labels/{kept}", json={"y": "up"}).status_code == 200
                self.labelled.append(kept)


def test_kills_under_load_lose_nothing(make_server: Callable[..., Server]) -> None:
    server = make_server("--snapshot-every", "400").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
    compared = 0
    for round_number in range(KILLS):
        senders = [Sender(server.url, 10 * round_number + k) for k in range(4)]
        for sender in senders:
            sender.start()
        with server.client() as client:
            while sum(len(s.learned) for s in senders) < 400:
                client.get("/healthz")
            seen = client.get("/models/m").json()
        server.kill()
        for sender in senders:
            sender.join()
        compared += _check_digest(server.folder, seen)
        server.start()
        with server.client() as client:
            assert client.get("/models/m").json()["seq"] >= seen["seq"]
            for sender in senders:
                _check_acknowledged(client, sender)
    assert server.stop() == 0
    assert compared > 0


def _check_acknowledged(client: httpx.Client, sender: Sender) -> None:
    for i, given in enumerate(sender.learned):
        found = client.post("/models/m/learn", json={**instance(i), "id": given}).json()
        assert found.get("duplicate"), f"{given} was acknowledged, but is not there"
    for kept in sender.kept:
        if kept in sender.unsure:
            continue
        expected = 409 if kept in sender.labelled else 200
        assert client.post(f"/labels/{kept}", json={"y": "up"}).status_code == expected


def _check_digest(folder: Path, seen: dict[str, Any]) -> bool:
    """What is on disk after the kill leads to the state that was seen before it, at the same number, to the bit.

    False where a snapshot of a later state has replaced what led there.
    """
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "models" / "m", copy)
    replay = Store._replay_journals
    snapshot = max(copy.glob("snapshot-*.state"))
    if int(snapshot.stem[9:]) > seen["seq"]:
        return False
    state = unpack(snapshot, Limits())
    apply = state.apply
    digests = {state.seq: learners.digest(state.learner)}

    def noted(kind: int, body: Any) -> Any:
        try:
            return apply(kind, body)
        finally:
            if state.seq == seen["seq"]:
                digests[state.seq] = learners.digest(state.learner)

    state.apply = noted  # type: ignore[method-assign]
    replay(copy, state)
    assert digests[seen["seq"]] == seen["digest"]
    return True


def test_a_clean_stop_leaves_a_snapshot_and_an_empty_journal(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(20):
            client.post("/models/m/learn", json=instance(i))
        before = client.get("/models/m").json()
    assert server.stop() == 0
    store = Store.open(server.folder / "models" / "m", Limits(), Policy())
    assert store.recovery is not None
    assert (store.recovery.snapshot, store.recovery.replayed) == (20, 0)
    assert learners.digest(store.state.learner) == before["digest"]


def _killed(make_server: Callable[..., Server], changes: int = 30) -> Server:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(changes):
            client.post("/models/m/learn", json=instance(i))
    server.kill()
    return server


def test_a_cut_journal_starts_without_its_torn_tail(make_server: Callable[..., Server]) -> None:
    server = _killed(make_server)
    path = max((server.folder / "models" / "m").glob("journal-*.log"))
    path.write_bytes(path.read_bytes()[:-5])
    server.start()
    assert "torn tail cut" in server.log()
    with server.client() as client:
        assert client.get("/models/m").json()["seq"] == 29


def test_a_flipped_byte_is_told_with_file_and_offset(make_server: Callable[..., Server]) -> None:
    server = _killed(make_server)
    path = max((server.folder / "models" / "m").glob("journal-*.log"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    server.start()
    said = rf"{re.escape(str(path))} is damaged at offset \d+: .*restore the folder"
    assert re.search(said, server.log())
    with server.client() as client:
        refused = client.post("/models/m/learn", json=instance(0))
        assert refused.status_code == 503
        assert re.search(rf"models/m/{path.name} is damaged at offset \d+", refused.json()["error"])
        assert client.get("/readyz").json()["models"].keys() == {"m"}
        assert client.get("/models").json()["unrecovered"].keys() == {"m"}
        assert client.put("/models/m", json={}).status_code == 409
        assert client.put("/models/other", json={"method": "arow"}).status_code == 201
        assert client.post("/models/other/learn", json=instance(0)).status_code == 200
        assert client.delete("/models/m").status_code == 200
        assert client.get("/readyz").status_code == 200
    assert not path.parent.exists()


def test_no_answer_holds_a_path_of_the_machine(make_server: Callable[..., Server]) -> None:
    """A damaged journal, a folder without a snapshot, one that cannot be read, a snapshot that cannot be written."""
    server = make_server("--snapshot-every", "20").start()
    with server.client() as client:
        for name in ("flipped", "bare", "odd", "whole"):
            client.put(f"/models/{name}", json={"method": "arow"})
            for i in range(9):
                client.post(f"/models/{name}/learn", json=instance(i))
    server.kill()
    folder = server.folder / "models"
    journal = max((folder / "flipped").glob("journal-*.log"))
    journal.write_bytes(journal.read_bytes()[:200] + b"?" + journal.read_bytes()[201:])
    for path in (folder / "bare").glob("snapshot-*"):
        path.unlink()
    for path in (folder / "odd").glob("snapshot-*"):
        path.unlink()
        path.mkdir()
    server.start()
    with server.client() as client:
        for i in range(9, 15):
            client.post("/models/whole/learn", json=instance(i))
        shutil.rmtree(folder / "whole")
        refused = [client.post("/models/whole/learn", json=instance(i)) for i in range(15, 25)]
        assert "a snapshot could not be written (No such file or directory)" in _events(client)
        texts = [r.text for r in refused] + [_events(client)]
        for name in ("flipped", "bare", "odd", "whole"):
            for path in ("", "/features", "/report", "/file"):
                texts.append(client.get(f"/models/{name}{path}").text)
            texts.append(client.post(f"/models/{name}/learn", json=instance(0)).text)
        texts += [client.get(path).text for path in ("/models", "/readyz", "/metrics", "/openapi.json", "/")]
    found = "\n".join(texts)
    assert "models/flipped/journal-00000001.log is damaged at offset" in found
    assert "models/bare has no snapshot" in found
    assert "Is a directory" in found
    assert not [part for part in (str(server.folder), str(Path.home()), sys.prefix) if part in found]
    assert str(journal) in server.log()


def _events(client: httpx.Client) -> str:
    """The events so far."""
    with client.stream("GET", "/events") as stream:
        for chunk in stream.iter_text():
            return chunk
    return ""


def test_a_full_disk_stops_the_server_and_loses_nothing(make_server: Callable[..., Server]) -> None:
    """A limit on the size of files stands for the full disk: the write fails in the same way."""
    server = make_server(limit_file_size=48).start()
    acknowledged = 0
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(2_000):
            try:
                found = client.post("/models/m/learn", json=instance(i))
            except httpx.TransportError:
                break
            if found.status_code != 200:
                assert found.status_code == 503
                assert "journal cannot be written" in found.json()["error"]
                break
            acknowledged = found.json()["seq"]
    assert server.process.wait(20) == 1
    assert "journal cannot be written (File too large); the server takes no more changes" in server.log()
    again = make_server().start()
    with again.client() as client:
        assert client.get("/models/m").json()["seq"] == acknowledged > 100


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_fsync_comes_before_the_acknowledgement(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """The system calls of the process: each answer to a learn is written after the journal's fdatasync returned."""
    trace = tmp_path / "trace"
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        command = ["strace", "-f", "-s", "400", "-e", "trace=write,fdatasync,sendto,sendmsg,writev", "-o", str(trace)]
        with subprocess.Popen([*command, "-p", str(server.process.pid)], stderr=subprocess.PIPE) as tracer:
            assert tracer.stderr is not None
            assert b"attached" in tracer.stderr.readline()
            for i in range(5):
                assert client.post("/models/m/learn", json=instance(i)).status_code == 200
            tracer.terminate()
    order = []
    for line in trace.read_text().splitlines():
        if "fdatasync" in line and line.rstrip().endswith("= 0"):
            order.append("synced")
        elif "VfJ" in line:
            order.append("written")
        elif '{\\"seq\\":' in line:
            order.append("acknowledged")
    assert order == ["written", "synced", "acknowledged"] * 5
