"""A real server process is killed, its files are damaged, its disk is full: what was acknowledged is there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import varifold
from tests.serve.following import stored
from tests.serve.server import Server, instance
from varifold import AROW
from varifold.serve.core import learners
from varifold.serve.core.database import Change, Database
from varifold.serve.core.state import Limits, ModelState

KILLS = int(os.environ.get("VARIFOLD_KILLS", "3"))
OTHER = os.environ.get("VARIFOLD_OTHER_BUILD")
"""Folder of another build of the package; without one, an installation that differs in its version alone."""


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


def other_build(folder: Path) -> dict[str, str]:
    """Return the environment of an installation with another version, which shares its other files with a build."""
    package = folder / "other" / "varifold"
    package.mkdir(parents=True)
    build = Path(varifold.__file__).parent if OTHER is None else Path(OTHER).absolute() / "varifold"
    for path in build.iterdir():
        if path.name not in ("_version.py", "__pycache__"):
            (package / path.name).symlink_to(path)
    (package / "_version.py").write_text('__version__ = version = "99.9"\n')
    return {"PYTHONPATH": str(package.parent)}


@pytest.mark.parametrize("upgraded", [False, True], ids=["same build", "another build"])
def test_kills_under_load_lose_nothing(make_server: Callable[..., Server], tmp_path: Path, upgraded: bool) -> None:
    server = make_server("--snapshot-every", "200").start()
    builds = [other_build(tmp_path), {}] if upgraded else [{}]
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
    compared = 0
    for round_number in range(KILLS):
        senders = [Sender(server.url, 10 * round_number + k) for k in range(4)]
        for sender in senders:
            sender.start()
        with server.client() as client:
            while sum(len(s.learned) for s in senders) < 200:
                client.get("/healthz")
            seen = client.get("/models/m/digest").json()
        server.kill()
        for sender in senders:
            sender.join()
        if not server.environment:  # a model file names the version that wrote it
            compared += _check_digest(server.folder, seen)
        server.environment = builds[round_number % len(builds)]
        server.start()
        assert ("varifold 99.9 serves" in server.log()) == bool(server.environment)
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
    shutil.copytree(folder, copy)
    database = Database(copy)
    (row,) = database.models()
    if row.snapshot > seen["seq"]:
        database.close()
        return False
    every = list(database.changes(row))
    cut = [Change(c.first, c.kind, c.rows[: seen["seq"] + 1 - c.first]) for c in every if c.first <= seen["seq"]]
    database.changes = lambda row: iter(cut)  # type: ignore[method-assign]
    state, _ = ModelState.load(database, row, Limits())
    database.close()
    assert learners.digest(state.learner) == seen["digest"]
    return True


class BatchSender(threading.Thread):
    """Sends batches of rows to its own model until the connection breaks; counts the rows that were acknowledged."""

    def __init__(self, url: str, model: str) -> None:
        super().__init__()
        self.url = url
        self.model = model
        self.acknowledged = 0

    def run(self) -> None:
        body = "\n".join(json.dumps(row) for row in ROWS)
        with httpx.Client(base_url=self.url, timeout=10.0) as client, contextlib.suppress(httpx.TransportError):
            while True:
                with client.stream("POST", f"/models/{self.model}/batch", content=body) as response:
                    for line in response.iter_lines():
                        assert json.loads(line) == {"seq": self.acknowledged + 1}
                        self.acknowledged += 1


ROWS = [instance(i) for i in range(2_000)]


def test_kills_during_batches_lose_nothing(make_server: Callable[..., Server]) -> None:
    """Each model learns the same rows in the same order, so its number of changes determines its learner to the bit."""
    server = make_server("--snapshot-every", "3000").start()
    for round_number in range(KILLS):
        with server.client() as client:
            senders = [BatchSender(server.url, f"m{round_number}-{k}") for k in range(3)]
            for sender in senders:
                client.put(f"/models/{sender.model}", json={"method": "arow"})
                sender.start()
            while sum(s.acknowledged for s in senders) < 2_000 * (1 + round_number % 5):
                client.get("/healthz")
        server.kill()
        for sender in senders:
            sender.join()
        server.start()
        with server.client() as client:
            for sender in senders:
                found = client.get(f"/models/{sender.model}/digest").json()
                assert found["seq"] >= sender.acknowledged
                expected = AROW()
                for i in range(found["seq"]):
                    row = ROWS[i % len(ROWS)]
                    expected.learn_one(row["x"], row["y"])
                assert found["digest"] == learners.digest(expected)
                client.delete(f"/models/{sender.model}")
    assert server.stop() == 0


def test_a_clean_stop_leaves_a_snapshot_and_nothing_to_replay(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(20):
            client.post("/models/m/learn", json=instance(i))
        before = client.get("/models/m/digest").json()
    assert server.stop() == 0
    state, recovery = stored(server.folder, "m")
    assert (recovery.snapshot, recovery.replayed) == (20, 0)
    assert learners.digest(state.learner) == before["digest"]


def _killed(make_server: Callable[..., Server], *names: str, changes: int = 30) -> Server:
    server = make_server().start()
    with server.client() as client:
        for name in names:
            client.put(f"/models/{name}", json={"method": "arow"})
            for i in range(changes):
                client.post(f"/models/{name}/learn", json=instance(i))
    server.kill()
    return server


def test_a_damaged_log_is_told_and_the_server_does_not_start(make_server: Callable[..., Server]) -> None:
    server = _killed(make_server, "m")
    path = server.folder / "state.db-wal"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    with pytest.raises(AssertionError, match=r"were acknowledged: its write-ahead log .* Restore a backup"):
        server.start()
    assert server.process.wait(20) == 1


def test_a_damaged_model_is_rejected_and_the_others_are_served(make_server: Callable[..., Server]) -> None:
    server = _killed(make_server, "m", "n")
    database = Database(server.folder)
    database._db.execute("UPDATE changes SET data = CAST(replace(data, 'up', 'UP') AS BLOB) WHERE model = 1")
    database.close()
    server.start()
    assert re.search(r"'m' could not be recovered: .*state.db is damaged: change \d+ of the model 'm'", server.log())
    with server.client() as client:
        rejected = client.post("/models/m/learn", json=instance(0))
        assert rejected.status_code == 503
        assert re.search(r"could not be recovered: state.db is damaged: change \d+", rejected.json()["error"])
        assert client.get("/readyz").json()["models"].keys() == {"m"}
        assert client.get("/models").json()["unrecovered"].keys() == {"m"}
        assert 'varifold_model_stopped{model="m"} 1.0' in client.get("/metrics").text
        assert client.put("/models/m", json={}).status_code == 409
        assert client.post("/models/n/learn", json=instance(0)).status_code == 200
        assert client.delete("/models/m").status_code == 200
        assert client.get("/readyz").status_code == 200


def test_no_answer_holds_a_path_of_the_machine(make_server: Callable[..., Server]) -> None:
    """A damaged change, a missing snapshot, a snapshot that is no model file."""
    server = _killed(make_server, "flipped", "bare", "odd", "sound", changes=9)
    database = Database(server.folder)
    for name, statement in (
        ("flipped", "UPDATE changes SET sum = 1 WHERE model = ?"),
        ("bare", "DELETE FROM snapshots WHERE model = ?"),
        ("odd", "UPDATE snapshots SET data = x'00', sum = 3523407757 WHERE part = 1 AND model = ?"),
    ):
        (model,) = (row.id for row in database.models() if row.name == name)
        database._db.execute(statement, (model,))
    database.close()
    server.start()
    with server.client() as client:
        texts = [_events(client)]
        for name in ("flipped", "bare", "odd", "sound"):
            for path in ("", "/features", "/report", "/file"):
                texts.append(client.get(f"/models/{name}{path}").text)
            texts.append(client.post(f"/models/{name}/learn", json=instance(0)).text)
        texts += [client.get(path).text for path in ("/models", "/readyz", "/metrics", "/openapi.json", "/")]
    found = "\n".join(texts)
    assert "state.db is damaged: change 1 of the model 'flipped'" in found
    assert "a snapshot of 'bare' is missing" in found
    assert "'odd' could not be recovered" in found
    assert not [part for part in (str(server.folder), str(Path.home()), sys.prefix) if part in found]
    assert str(server.folder) in server.log()


def test_a_backup_under_load_holds_everything_acknowledged_before_it(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server("--snapshot-every", "300").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        senders = [Sender(server.url, k) for k in range(3)]
        for sender in senders:
            sender.start()
        while sum(len(s.learned) for s in senders) < 300:
            client.get("/healthz")
        acknowledged = [set(sender.learned) for sender in senders]
        command = [sys.executable, "-m", "varifold"]
        subprocess.run([*command, "backup", str(server.folder), str(tmp_path / "backup.db")], check=True)
        while any(len(s.learned) < len(a) + 20 for s, a in zip(senders, acknowledged, strict=True)):
            client.get("/healthz")
    server.kill()
    for sender in senders:
        sender.join()
    subprocess.run([*command, "restore", str(tmp_path / "backup.db"), str(tmp_path / "new")], check=True)
    state, _ = stored(tmp_path / "new", "m")
    for ids in acknowledged:
        assert all(state.knows(given) for given in ids)


def _events(client: httpx.Client) -> str:
    """The events so far."""
    with client.stream("GET", "/events") as stream:
        for chunk in stream.iter_text():
            return chunk
    return ""


def test_a_full_disk_stops_the_server_and_loses_nothing(make_server: Callable[..., Server]) -> None:
    """A limit on the size of files stands for the full disk: the write fails in the same way."""
    server = make_server(limit_file_size=3_000).start()
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
                assert "state cannot be written" in found.json()["error"]
                break
            acknowledged = found.json()["seq"]
    assert server.process.wait(20) == 1
    assert "state cannot be written (disk I/O error); the server accepts no more changes" in server.log()
    again = make_server().start()
    with again.client() as client:
        assert client.get("/models/m").json()["seq"] == acknowledged > 100


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_fsync_comes_before_the_acknowledgement(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """The system calls of the process: each answer to a learn is written after the log's fdatasync returned."""
    trace = tmp_path / "trace"
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        calls = "trace=pwrite64,write,fdatasync,fsync,sendto,sendmsg,writev"
        command = ["strace", "-f", "-s", "400", "-e", calls, "-o", str(trace)]
        with subprocess.Popen([*command, "-p", str(server.process.pid)], stderr=subprocess.PIPE) as tracer:
            assert tracer.stderr is not None
            assert b"attached" in tracer.stderr.readline()
            for i in range(5):
                assert client.post("/models/m/learn", json=instance(i)).status_code == 200
            tracer.terminate()
    order = []
    for line in trace.read_text().splitlines():
        if "sync" in line and line.rstrip().endswith("= 0"):
            order.append("synced")
        elif "pwrite64" in line and ", 4096, " in line and order[-1:] != ["written"]:
            order.append("written")
        elif '{\\"seq\\":' in line:
            order.append("acknowledged")
    assert order == ["written", "synced", "acknowledged"] * 5


def _mounted(folder: Path, *options: str) -> bool:
    """Mount a small file system in memory on a folder; False where this is not allowed."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(["mount", *options, str(folder)], capture_output=True).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB, which is unmounted at the end."""
    folder = tmp_path / "disk"
    if not _mounted(folder, "-t", "tmpfs", "-o", "size=4m", "varifold-test"):
        pytest.skip("mounting a file system is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _learned_until_it_stops(server: Server) -> int:
    """Send changes until one is not accepted; return the number of the last one that was acknowledged."""
    acknowledged = 0
    with server.client() as client:
        for i in range(20_000):
            try:
                found = client.post("/models/m/learn", json={**instance(i, 40), "id": i})
            except httpx.TransportError:
                break
            if found.status_code != 200:
                assert found.status_code == 503
                break
            acknowledged = found.json()["seq"]
    return acknowledged


def test_a_full_file_system_loses_nothing(make_server: Callable[..., Server], small_disk: Path) -> None:
    """A real file system that is full, at the first start and at the second; then there is space."""
    server = make_server()
    server.folder = small_disk / "state"
    server.start()
    with server.client() as client:
        assert client.put("/models/m", json={"method": "arow"}).status_code == 201
    acknowledged = _learned_until_it_stops(server)
    assert acknowledged > 100
    assert server.process.wait(30) == 1
    assert "database or disk is full" in server.log()
    assert subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)]).returncode == 0
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["seq"] == acknowledged
        for i in range(acknowledged):
            found = client.post("/models/m/learn", json={**instance(i, 40), "id": i})
            assert found.json()["duplicate"]
        assert client.post("/models/m/learn", json=instance(0)).json()["seq"] == acknowledged + 1
    assert server.stop() == 0


def test_a_read_only_file_system_is_reported_and_nothing_is_changed(
    make_server: Callable[..., Server], small_disk: Path
) -> None:
    """Read-only while the server runs, then at the start."""
    server = make_server()
    server.folder = small_disk / "state"
    server.start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(20):
            assert client.post("/models/m/learn", json=instance(i)).status_code == 200
    server.kill()
    assert subprocess.run(["mount", "-o", "remount,ro", str(small_disk)]).returncode == 0
    before = {path.name: path.read_bytes() for path in server.folder.iterdir()}
    with pytest.raises(AssertionError, match="no line with"):
        server.start()
    assert server.process.wait(20) == 1
    assert "Traceback" not in server.log()
    assert "Read-only file system" in server.log()
    assert {path.name: path.read_bytes() for path in server.folder.iterdir()} == before
    assert subprocess.run(["mount", "-o", "remount,rw", str(small_disk)]).returncode == 0
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["seq"] == 20


def test_two_servers_on_one_folder(make_server: Callable[..., Server]) -> None:
    first = make_server().start()
    with first.client() as client:
        client.put("/models/m", json={"method": "arow"})
        second = make_server()
        second._log = second._log.with_name("second.log")
        with pytest.raises(AssertionError, match="is in use by another process"):
            second.start()
        assert second.process.wait(20) == 1
        for i in range(20):
            assert client.post("/models/m/learn", json=instance(i)).status_code == 200
        with pytest.raises(AssertionError, match="is in use by another process"):
            second.start()
        assert client.get("/models/m").json()["seq"] == 20
    assert first.stop() == 0


def test_a_clock_that_is_set_back_loses_nothing(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """The machine restarts with a clock of two days ago; instances wait, labels and ids are found."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import time\nnow = time.time\ntime.time = lambda: now() - 172_800\n")
    server = make_server("--max-wait", "24").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(20):
            assert client.post("/models/m/learn", json={**instance(i), "id": i}).status_code == 200
        kept = client.post("/models/m/predict", json={"x": instance(0)["x"], "keep": True}).json()["id"]
        number = _last_event(client)
    server.kill()
    server.environment = {"PYTHONPATH": str(site)}
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["seq"] == 21
        assert client.post("/models/m/learn", json={**instance(3), "id": 3}).json()["duplicate"]
        assert client.post(f"/labels/{kept}", json={"y": "up"}).status_code == 200
        later = client.post("/models/m/predict", json={"x": instance(1)["x"], "keep": True}).json()["id"]
        assert _last_event(client) >= number
    server.kill()
    server.environment = {}
    server.start()
    with server.client() as client:
        assert client.post(f"/labels/{kept}", json={"y": "up"}).status_code == 409
        assert client.post(f"/labels/{later}", json={"y": "up"}).status_code == 200
        assert client.get("/models/m").json()["seq"] == 24
    assert server.stop() == 0


def _last_event(client: httpx.Client) -> int:
    """The number of the latest event; 0 if there is none."""
    return max((int(number) for number in re.findall(r"^id: (\d+)", _events(client), re.M)), default=0)
