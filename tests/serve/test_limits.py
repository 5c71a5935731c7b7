"""What a client can do to a server without end: connections, heads of requests, batches, slow alert commands."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import httpx
import orjson
import pytest

from tests.serve.server import Server, instance
from varifold import AROW
from varifold.serve.http import messages, model_routes, protocol, server_routes
from varifold.serve.http.app import App, BodyLimits
from varifold.serve.http.openapi import document


def address(server: Server) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def limited(make_server: Callable[..., Server], files: int) -> Server:
    """Start a server that may open few files."""
    server = make_server()
    return server.start(wrap=["bash", "-c", f'ulimit -n {files}; exec "$@"', "-"])


def test_idle_connections_leave_file_descriptors_to_the_state(make_server: Callable[..., Server]) -> None:
    server = limited(make_server, 200)
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        idle = [socket.create_connection(address(server)) for _ in range(250)]
        time.sleep(0.5)
        open_files = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        assert open_files < 150
        for i in range(5):
            assert client.post("/models/m/learn", json=instance(i)).status_code == 200
    for each in idle:
        each.close()
    assert server.stop() == 0


def test_idle_connections_keep_out_nobody(make_server: Callable[..., Server]) -> None:
    server = make_server("--max-connections", "20").start()
    with server.client() as known:
        known.put("/models/m", json={"method": "arow"})
        idle = [socket.create_connection(address(server)) for _ in range(100)]
        for each in idle[::2]:
            with contextlib.suppress(OSError):  # closed already
                each.sendall(b"POST /models/m/learn HTTP/1.1\r\nhost: localhost\r\n")
        for i in range(10):
            with server.client() as client:
                assert client.post("/models/m/learn", json=instance(i)).status_code == 200
        assert known.get("/models/m").json()["steps"] == 10
    for each in idle:
        each.close()


def test_a_request_whose_head_does_not_come_is_closed(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with socket.create_connection(address(server)) as silent, socket.create_connection(address(server)) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
        for each in (silent, slow):
            each.settimeout(protocol._HEAD_SECONDS + 10)
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(100) == b""


def test_header_lines_without_end_are_rejected(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with socket.create_connection(address(server)) as endless:
        endless.sendall(b"GET /healthz HTTP/1.1\r\n")
        sent = 0
        with contextlib.suppress(OSError):  # reset or broken, as the system has it
            while sent < 20_000_000:
                sent += endless.send(b"x: %b\r\n" % (b"y" * 1_000))
    assert sent < 10_000_000
    with server.client() as client:
        assert client.get("/healthz").status_code == 200


def memory(server: Server) -> float:
    """Return the most memory that a server has used, in MB."""
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


@pytest.mark.parametrize("row", [b"0", b'{"x":{}}'], ids=["rejected", "predicted"])
def test_a_batch_of_many_small_rows_takes_little_memory(make_server: Callable[..., Server], row: bytes) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        client.post("/models/m/batch", content=row)
        before = memory(server)
        content = (row + b"\n") * (4_000_000 // (len(row) + 1))
        with client.stream("POST", "/models/m/batch", content=content) as answers:
            lines = sum(chunk.count(b"\n") for chunk in answers.iter_bytes())
        assert memory(server) - before < 60
        if row == b"0":
            assert lines < 5_000
        else:
            assert lines == content.count(b"\n")


def test_a_batch_ends_after_a_thousand_rejected_rows(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        good = orjson.dumps(instance(1))
        found = client.post("/models/m/batch", content=b"\n".join([good, *[b"{"] * 9_000, good])).text.splitlines()
        last = orjson.loads(found[-1])
        assert "rows rejected; the rest of the batch was not read" in last["error"]
        assert 1_000 < len(found) < 6_000
        assert client.get("/models/m").json()["steps"] == 1
        found = client.post("/models/m/batch", content=b"\n".join([good, *[b"{"] * 900, good])).text.splitlines()
        assert len(found) == 902
        assert client.get("/models/m").json()["steps"] == 3


def test_a_slow_alert_command_holds_up_neither_snapshots_nor_the_stop(make_server: Callable[..., Server]) -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(40)'"
    server = make_server("--snapshot-every", "50", "--alert-command", command).start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(8):
            rows = [{"x": {"a": 1.0, f"b{i}": 1.0}, "y": "up"} for _ in range(100)]
            client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
            time.sleep(0.3)
        metrics = client.get("/metrics").text
        made = next(line for line in metrics.splitlines() if line.startswith("varifold_model_snapshots{"))
        assert float(made.split()[-1]) >= 3
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 12


@pytest.mark.parametrize("route", ["learn", "batch"])
def test_a_long_name_of_an_object_is_not_repeated_for_each_of_its_fields(
    make_server: Callable[..., Server], route: str
) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        before = memory(server)
        body = orjson.dumps({"x": {"p" * 200_000: {f"a{i}": 1 for i in range(5_000)}}, "y": 1})
        answer = client.post(f"/models/m/{route}", content=body)
        assert answer.status_code == (422 if route == "learn" else 200)
        assert "names of more than 8 MB" in orjson.loads(answer.text)["error"]
        assert memory(server) - before < 40
        assert client.get("/models/m").json()["steps"] == 0
        assert client.get("/readyz").status_code == 200


def test_wide_rows_are_read_a_megabyte_at_a_time(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        names = ", ".join(f'"{i}": 1' for i in range(100))
        row = b'{"x": {"%b": {%b}}}\n' % (b"p" * 60_000, names.encode())
        client.post("/models/m/batch", content=row)
        before = memory(server)
        with client.stream("POST", "/models/m/batch", content=row * 80) as answers:
            assert sum(chunk.count(b"\n") for chunk in answers.iter_bytes()) == 80
        assert memory(server) - before < 200  # six megabytes of names in each


def test_blank_lines_hold_up_nobody(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client, server.client() as other:
        client.put("/models/m", json={"method": "arow"})
        longest, done = 0.0, threading.Event()

        def send() -> None:
            assert client.post("/models/m/batch", content=b"\n" * 20_000_000).text == ""
            done.set()

        sender = threading.Thread(target=send)
        sender.start()
        while not done.is_set():
            started = time.monotonic()
            assert other.get("/healthz").status_code == 200
            longest = max(longest, time.monotonic() - started)
        sender.join()
        assert longest < 0.5


def test_a_long_name_is_not_repeated_in_each_error(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        assert client.put("/models/m", json={"method": "arow", "key": "k" * 500_000}).status_code == 201
        found = client.post("/models/m/batch", content=b'{"x":{}}\n' * 50)
        assert found.text.count("one learner per") == 50
        assert len(found.content) < 200_000
        assert len(client.post("/models/m/learn", json={"x": {}, "y": 1}).content) < 4_000


def test_the_features_of_a_wide_model_are_listed_in_part(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        rows = [{"x": {f"f{k}_{i}": 1 for i in range(2_500)}, "y": k % 2} for k in range(6)]
        client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
        found = client.get("/models/m/features").json()["features"]
        assert len(found) == 10_000
        assert {row["first_seen"] for row in found.values()} == {3, 4, 5, 6}
        assert len(client.get("/models/m/features?limit=100000").json()["features"]) == 15_000
        assert client.get("/models/m/features?limit=100001").status_code == 422


def test_long_lists_are_made_one_at_a_time(make_server: Callable[..., Server]) -> None:
    """Ten clients list 20,000 features each; other requests come in between."""
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        body = orjson.dumps({"x": {f"f{i}": 1 for i in range(20_000)}, "y": 1})
        assert client.post("/models/m/learn", content=body).status_code == 200
        lists = [socket.create_connection(address(server)) for _ in range(10)]
        for one in lists:
            one.sendall(b"GET /models/m/features?limit=100000 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        responded = threading.Thread(target=lambda: [one.recv(1) for one in lists])
        responded.start()
        waits = [time.monotonic()]
        while responded.is_alive():
            assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200  # on a connection of its own
            waits.append(time.monotonic())
        assert max(after - before for before, after in itertools.pairwise(waits)) < 0.4 * (waits[-1] - waits[0])
        for one in lists:
            one.close()


def test_responses_that_nobody_reads_take_bounded_memory() -> None:
    """Two of three clients read nothing of a response of 50 KB; together they may leave 120 KB."""

    async def main() -> list[int]:
        served = App(Any, None, BodyLimits(total=120_000))  # type: ignore[arg-type]
        scope = {"type": "http", "method": "GET", "path": "/openapi.json", "headers": [(b"host", b"localhost")]}
        statuses: list[int] = []
        read = asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                await (read.wait() if message["status"] == 200 else asyncio.sleep(0))

        requests = [asyncio.create_task(served(scope, Any, send)) for _ in range(3)]  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        read.set()
        await asyncio.gather(*requests)
        await served(scope, Any, send)  # type: ignore[arg-type]
        return statuses

    assert 40_000 < len(orjson.dumps(document())) < 60_000
    assert asyncio.run(main()) == [200, 200, 429, 200]


def test_only_the_features_that_are_listed_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = AROW()
    for label in (0, 1):
        learner.learn_one({f"f{i}": 1.0 for i in range(500)}, label)
    described: list[int] = []
    describe = AROW._describe_features

    def counted(learner: AROW, slots: list[int]) -> Any:
        described.append(len(slots))
        return describe(learner, slots)

    monkeypatch.setattr(AROW, "_describe_features", counted)
    state = SimpleNamespace(learner=learner, monitor=SimpleNamespace(features=list))
    app: Any = SimpleNamespace(models={"m": SimpleNamespace(state=state)})
    request: Any = SimpleNamespace(argument="m", query={"limit": "10"}.get)
    found = asyncio.run(model_routes.features(app, request))
    assert len(orjson.loads(found.body)["features"]) == 10
    assert described == [10]


def test_few_model_files_are_sent_at_a_time(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for k in range(4):
            body = orjson.dumps({"x": {f"f{k}_{i}": 1 for i in range(20_000)}, "y": k % 2})
            assert client.post("/models/m/learn", content=body).status_code == 200
        slow = []
        for _ in range(4):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.connect(address(server))
            one.sendall(b"GET /models/m/file HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert one.recv(15) == b"HTTP/1.1 200 OK"
            slow.append(one)
        busy = client.get("/models/m/file")
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
        assert client.post("/models/m/learn", json=instance(1)).status_code == 200
        for one in slow:
            one.close()
        end = time.monotonic() + 10
        while client.get("/models/m/file").status_code == 429 and time.monotonic() < end:
            time.sleep(0.05)
        assert client.get("/models/m/file").status_code == 200
        found = re.search(r'varifold_requests_total\{route="file",status="200"\} (\S+)', client.get("/metrics").text)
        assert found is not None
        assert float(found[1]) >= 1
    assert server.stop() == 0


def test_a_long_query_is_read_once_not_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def read(text: str) -> dict[str, list[str]]:
        texts.append(text)
        return parse_qs(text)

    monkeypatch.setattr(messages, "parse_qs", read)
    query = b"model=m&key=pump-7&" + b"a=1&" * 15_000
    request = messages.Request({"query_string": query}, receive=None, send=None)  # type: ignore[arg-type]
    wanted = [server_routes._wanted(request, {"model": "m", "keys": [key]}) for key in ("pump-7", "pump-8")]
    assert (wanted, len(texts)) == ([True, False], 1)
