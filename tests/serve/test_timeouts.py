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


@pytest.mark.parametrize(("size", "open_"), [(1, False), (100, True)])
def test_a_body_has_to_arrive_at_a_rate(size: int, open_: bool) -> None:
    """A packet every five seconds, for ten minutes: of one byte, or of a row."""

    async def send() -> bool:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()

        config = uvicorn.Config(app, log_config=None)
        config.load()
        served: Any = SimpleNamespace(limits=SimpleNamespace(body=1 << 20), direct=lambda url: None)
        protocol: Any = protocol_of(served, 10)(config, ServerState(), {})  # type: ignore[call-arg]
        clock = protocol.loop = Clock()
        transport = mock.MagicMock()
        transport.is_closing.return_value = False
        protocol.connection_made(transport)
        protocol.data_received(b"POST /models HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n")
        for _ in range(120):
            clock.now += 5.0
            protocol.data_received(b"x" * size)
            protocol.close_if_late(clock.now)
        for task in list(protocol.tasks):
            task.cancel()
        return not transport.abort.called

    assert asyncio.run(send()) == open_


def test_only_get_opens_a_web_socket(shared: Server) -> None:
    connection = Connection(shared)
    connection.socket.settimeout(20)
    key = b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\n" + key
    connection.send(b"POST /models/none/learn HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n", upgrade, b"\r\n{}")
    assert connection.response()[0] in (400, 404)
    connection.socket.close()
