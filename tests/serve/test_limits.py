"""What a client can do to a server without end: connections, heads of requests, batches, slow alert commands."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.serve.server import Server, instance
from varifold.serve.http import protocol


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
