"""Requests that are handled without ASGI get the same responses, in the same order, as those that are not."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.serve.server import Server, instance
from varifold.serve.http.app import Route
from varifold.serve.http.direct import Exchange


class Connection:
    """A connection on which a test writes bytes and reads responses."""

    def __init__(self, server: Server) -> None:
        address = urlsplit(server.url)
        self.socket = socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60)
        self.file = self.socket.makefile("rb")

    def send(self, *requests: bytes) -> None:
        self.socket.sendall(b"".join(requests))

    def response(self) -> tuple[int, dict[str, str], dict[str, Any]]:
        status = int(self.file.readline().split()[1])
        headers = dict(line.decode().strip().lower().split(": ") for line in iter(self.file.readline, b"\r\n"))
        return status, headers, json.loads(self.file.read(int(headers["content-length"])))

    def at_end(self) -> bool:
        return self.file.read(1) == b""


def request(path: str, body: Any, *headers: str, version: str = "1.1") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/{version}", "host: localhost", f"content-length: {len(data)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + data


@pytest.fixture
def connection(shared: Server) -> Any:
    one = Connection(shared)
    yield one
    one.socket.close()


def test_requests_one_after_another(connection: Connection, model: str) -> None:
    for i in range(3):
        connection.send(request(f"/models/{model}/learn", instance(i)))
        status, headers, body = connection.response()
        assert (status, body) == (200, {"seq": i + 1})
        assert headers["content-type"] == "application/json"
        assert "connection" not in headers
    connection.send(request(f"/models/{model}/predict", {"x": instance(9)["x"]}))
    assert connection.response()[2]["seq"] == 3


def test_few_pipelined_requests_wait_for_their_responses(connection: Connection) -> None:
    """One packet of thousands of requests would take seconds, in which nobody else is served."""
    connection.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3_000)
    assert [connection.response()[0] for _ in range(250)] == [200] * 250
    rest = connection.file.read()
    assert rest.count(b"HTTP/1.1 200 OK") < 20
    assert rest.count(b"HTTP/1.1 400 Bad Request") == 1


def test_pipelined_requests_are_answered_in_order(connection: Connection, model: str, client: httpx.Client) -> None:
    learns = [request(f"/models/{model}/learn", instance(i)) for i in range(30)]
    connection.send(*learns[:10], b"GET /models HTTP/1.1\r\nhost: localhost\r\n\r\n", *learns[10:])
    bodies = [connection.response()[2] for _ in range(31)]
    assert "models" in bodies.pop(10)
    assert [body["seq"] for body in bodies] == list(range(1, 31))
    assert client.get(f"/models/{model}").json()["steps"] == 30


@pytest.mark.parametrize(
    "garbage", [b"\0garbage\r\n\r\n", b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"]
)
@pytest.mark.parametrize("learns", [1, 3])
def test_what_follows_a_request_does_not_take_its_response(
    connection: Connection, model: str, client: httpx.Client, learns: int, garbage: bytes
) -> None:
    connection.send(*(request(f"/models/{model}/learn", instance(i)) for i in range(learns)), garbage)
    assert [connection.response()[::2] for _ in range(learns)] == [(200, {"seq": i + 1}) for i in range(learns)]
    assert connection.file.readline().startswith(b"HTTP/1.1 400 ")
    assert connection.file.read().endswith(b"Invalid HTTP request received.")
    assert client.get(f"/models/{model}").json()["steps"] == learns


def test_a_request_through_asgi_keeps_its_response_too(connection: Connection) -> None:
    connection.send(b"GET /models HTTP/1.1\r\nhost: localhost\r\n\r\n", b"\0garbage\r\n\r\n")
    assert connection.response()[0] == 200
    assert connection.file.readline().startswith(b"HTTP/1.1 400 ")


def test_a_request_in_pieces(connection: Connection, model: str) -> None:
    for byte in request(f"/models/{model}/learn", instance(0)):
        connection.send(bytes([byte]))
    assert connection.response()[2] == {"seq": 1}


@pytest.mark.parametrize(
    "made",
    [
        lambda path, body: request(path, body, "connection: close"),
        lambda path, body: request(path, body, version="1.0"),
    ],
)
def test_connections_that_end_with_the_response(connection: Connection, model: str, made: Any) -> None:
    connection.send(made(f"/models/{model}/learn", instance(0)))
    status, headers, body = connection.response()
    assert (status, headers["connection"], body) == (200, "close", {"seq": 1})
    assert connection.at_end()


def test_errors_keep_the_connection(connection: Connection, model: str) -> None:
    for path, body, expected in [
        (f"/models/{model}/learn", b"{", 400),
        (f"/models/{model}/learn", b"", 400),
        (f"/models/{model}/learn", {"x": 1, "y": 1}, 422),
        (f"/models/{model}/learn", {"x": {"a": 1}}, 422),
        (f"/models/{model}/predict", {"x": {"a": [1]}}, 422),
        ("/models/none/learn", instance(0), 404),
        (f"/models/{model}/learn", {"x": {"a" * 30_000: 1}, "y": 1}, 413),
    ]:
        connection.send(request(path, body))
        status, _, response = connection.response()
        assert status == expected, response
        assert "error" in response
    connection.send(request(f"/models/{model}/learn", instance(0)))
    assert connection.response()[2] == {"seq": 1}


def test_other_hosts_are_rejected(connection: Connection, model: str) -> None:
    connection.send(request(f"/models/{model}/learn", instance(0)).replace(b"host: localhost", b"host: example.org"))
    assert connection.response()[0] == 403


def test_the_body_in_chunks_and_the_name_in_percent_signs(connection: Connection, model: str) -> None:
    data = json.dumps(instance(0)).encode()
    head = f"POST /models/{model}/learn HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    connection.send(head, b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
    assert connection.response()[2] == {"seq": 1}
    connection.send(request(f"/models/%{ord(model[0]):x}{model[1:]}/learn?a=1", instance(1)))
    assert connection.response()[2] == {"seq": 2}


def test_a_client_that_leaves_is_still_learned(shared: Server, model: str, client: httpx.Client) -> None:
    for i in range(5):
        gone = Connection(shared)
        gone.send(request(f"/models/{model}/learn", instance(i)))
        gone.socket.close()
    while client.get(f"/models/{model}").json()["steps"] < 5:
        pass
    assert client.post(f"/models/{model}/learn", json=instance(5)).json() == {"seq": 6}


def _send_for_ever(sender: socket.socket, data: bytes, most: int = 200 << 20) -> None:
    sent = 0
    while sent < most:
        sent += sender.send(data)


def test_a_client_that_does_not_read_holds_up_only_itself(shared: Server, model: str, client: httpx.Client) -> None:
    deaf = Connection(shared)
    deaf.socket.setblocking(False)
    one = request(f"/models/{model}/predict", {"x": {"a": 1.0}})
    with pytest.raises(BlockingIOError):
        _send_for_ever(deaf.socket, one * 1_000)
    assert client.post(f"/models/{model}/learn", json=instance(0)).json() == {"seq": 1}
    deaf.socket.close()


def test_requests_are_counted(client: httpx.Client, model: str) -> None:
    def count() -> float:
        found = re.search(r'varifold_requests_total\{route="learn",status="200"\} (\S+)', client.get("/metrics").text)
        return float(found[1]) if found else 0.0

    before = count()
    client.post(f"/models/{model}/learn", json=instance(0))
    assert count() == before + 1


def test_an_idle_connection_is_closed(connection: Connection, model: str) -> None:
    connection.send(request(f"/models/{model}/learn", instance(0)))
    connection.response()
    assert connection.at_end()  # after a few seconds


def test_a_failure_is_a_response_and_ends_the_connection() -> None:
    class Fake:
        """Connection, transport, model and application in one."""

        name = "m"
        written = b""
        closed = False

        def __init__(self) -> None:
            self.transport = self.metrics = self

        def is_closing(self) -> bool:
            return self.closed

        def write(self, data: bytes) -> None:
            self.written += data

        def close(self) -> None:
            self.closed = True

        def on_direct_response(self) -> None: ...
        def count(self, name: str, status: int, seconds: float) -> None: ...
        def error_of(self, name: str, error: Exception) -> None: ...
        def access(self, *given: Any) -> None: ...

    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    fake: Any = Fake()
    exchange = Exchange(fake, fake, Route("predict", fail, 0, start=fail), fake, {})  # type: ignore[arg-type]
    exchange.start()
    assert exchange.done()
    assert fake.closed
    assert fake.written.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert fake.written.endswith(b'\r\n\r\n{"error":"the server failed at this request; see its log"}')
