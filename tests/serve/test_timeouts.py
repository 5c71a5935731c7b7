"""A connection is closed if the next request, or the body of the present one, does not come."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.serve.server import Server
from tests.serve.test_direct import Connection
from varifold.serve.http.protocol import protocol_of


class Clock:
    """An event loop whose time a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.loop = asyncio.get_running_loop()

    def time(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)


def test_blank_lines_after_a_response_do_not_keep_a_connection(shared: Server) -> None:
    connection = Connection(shared)
    connection.socket.settimeout(20)
    connection.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert connection.response()[0] == 200
    start = time.monotonic()
    connection.send(b"\r\n")
    assert connection.at_end()
    assert time.monotonic() - start > 3
    connection.socket.close()


def connected(state: ServerState | None = None) -> tuple[Any, Clock, Any]:
    """Return a connection to an application that responds with 100 bytes, its clock, and its transport."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
        await send({"type": "http.response.body", "body": b"x" * 100})

    config = uvicorn.Config(app, log_config=None)
    config.load()
    served: Any = SimpleNamespace(limits=SimpleNamespace(body=1 << 20), direct=lambda url: None)
    protocol: Any = protocol_of(served, 10)(config, state or ServerState(), {})
    clock = protocol.loop = Clock()
    transport = mock.MagicMock()
    transport.is_closing.return_value = False
    transport.get_write_buffer_size.return_value = 0
    protocol.connection_made(transport)
    return protocol, clock, transport


@pytest.mark.parametrize(("size", "open_"), [(1, False), (100, True)])
def test_a_body_has_to_arrive_at_a_rate(size: int, open_: bool) -> None:
    """A packet every five seconds, for ten minutes: of one byte, or of a row."""

    async def send() -> bool:
        protocol, clock, transport = connected()
        protocol.data_received(b"POST /models HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n")
        for _ in range(120):
            clock.now += 5.0
            protocol.data_received(b"x" * size)
            protocol.close_if_late(clock.now)
        for task in list(protocol.tasks):
            task.cancel()
        return not transport.abort.called

    assert asyncio.run(send()) == open_


@pytest.mark.parametrize("reads", [False, True])
def test_a_response_has_to_be_read(reads: bool) -> None:
    """What the system does not accept stays in the buffer; it is written out if the client reads, once a minute."""

    async def send() -> bool:
        protocol, clock, transport = connected()
        protocol.data_received(b"GET /models HTTP/1.1\r\nhost: localhost\r\n\r\n")
        transport.get_write_buffer_size.return_value = 100_000
        for _ in range(4):
            protocol.pause_writing()
            for _ in range(50):
                clock.now += 1.0
                protocol.close_if_late(clock.now)
            if reads:
                protocol.resume_writing()
        for task in list(protocol.tasks):
            task.cancel()
        return not transport.abort.called

    assert asyncio.run(send()) == reads


def test_a_closed_connection_does_not_wait_for_its_client_to_read() -> None:
    async def send() -> None:
        protocol, clock, transport = connected()
        protocol.data_received(b"GET /models HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asyncio.gather(*protocol.tasks)
        transport.get_write_buffer_size.return_value = 100
        for _ in range(70):
            clock.now += 1.0
            protocol.close_if_late(clock.now)
        assert transport.close.called
        assert transport.abort.called

    asyncio.run(send())


def test_a_pipelined_request_may_wait_while_the_server_does_not_read() -> None:
    async def send() -> None:
        protocol, clock, transport = connected()
        one = b"GET /models HTTP/1.1\r\nhost: localhost\r\n"
        protocol.data_received(one + b"\r\n" + one + b"\r\n" + one)
        for _ in range(30):
            clock.now += 1.0
            protocol.close_if_late(clock.now)
        assert not transport.abort.called
        while protocol.tasks:
            await asyncio.gather(*protocol.tasks)
        for _ in range(30):
            clock.now += 1.0
            protocol.close_if_late(clock.now)
        assert transport.abort.called  # the rest of the third request does not come

    asyncio.run(send())


def test_many_pipelined_requests_are_no_long_head() -> None:
    async def send() -> None:
        protocol, _, transport = connected()
        one = b"GET /models HTTP/1.1\r\nhost: localhost\r\nx: %b\r\n" % (b"y" * 1_000)
        protocol.data_received((one + b"\r\n") * 200 + one)
        assert not transport.close.called
        protocol.data_received(b"x: y\r\n" * 20_000)
        assert transport.close.called
        for task in list(protocol.tasks):
            task.cancel()

    asyncio.run(send())


def test_only_get_opens_a_web_socket(shared: Server) -> None:
    connection = Connection(shared)
    connection.socket.settimeout(20)
    key = b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\n" + key
    connection.send(b"POST /models/none/learn HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n", upgrade, b"\r\n{}")
    assert connection.response()[0] in (400, 404)
    connection.socket.close()


def test_a_connection_beyond_the_limit_replaces_one_that_waits_for_a_request() -> None:
    """First those that have sent no request, then those between two; none whose response is in progress."""
    state = ServerState()

    async def send() -> list[int]:
        made = [connected(state) for _ in range(10)]
        for i, (protocol, _, _) in enumerate(made):
            protocol._since = -float(i)  # the last has waited longest
        request = b"GET /models HTTP/1.1\r\nhost: localhost\r\n\r\n"
        made[7][0].data_received(request)  # between two requests
        made[8][0].data_received(request)  # the client reads no response
        await asyncio.gather(*made[7][0].tasks, *made[8][0].tasks)
        made[8][2].get_write_buffer_size.return_value = 100
        made[9][0].data_received(request)
        closed: list[int] = []
        for _ in range(8):
            more, _, transport = connected(state)
            more._phase = 2  # its response is in progress, too
            assert len(state.connections) == 10
            assert not transport.abort.called
            closed += [i for i, each in enumerate(made) if each[2].abort.called and i not in closed]
        assert connected(state)[2].abort.called
        for task in list(made[9][0].tasks):
            task.cancel()
        return closed

    assert asyncio.run(send()) == [6, 5, 4, 3, 2, 1, 0, 7]
