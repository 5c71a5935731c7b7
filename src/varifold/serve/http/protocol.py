"""Limits on connections: how many there are, how long a request may take to arrive, how long its head may be.

uvicorn has no such limits before a request is complete: idle connections would use up the file descriptors of the
process, and header lines without end its memory, both without a token.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

_HEAD, _BODY, _ANSWER = range(3)
_HEAD_BYTES = 64 << 10
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 60.0
"""How long a body may bring nothing new."""
_RESERVED = 128
"""File descriptors that are left to the state and to the libraries."""
_DEFAULT_MOST = 4_096


def most_connections(asked: int | None) -> int:
    """Return how many connections there may be: what is asked for, as far as the process has file descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DEFAULT_MOST if soft == resource.RLIM_INFINITY else max(16, soft - _RESERVED)
    return min(_DEFAULT_MOST if asked is None else asked, allowed)


def make_protocol(most: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with the limits; the class is made here because uvicorn is an extra."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class LimitedProtocol(HttpToolsProtocol):
        """A connection that is closed if its requests take too long to arrive or have too long a head."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Accept a connection, unless there are too many."""
            super().connection_made(transport)
            self._expect_head()
            if len(self.connections) > most:
                transport.abort()

        def _expect_head(self) -> None:
            self._phase, self._head, self._since = _HEAD, 0, self.loop.time()

        def on_message_begin(self) -> None:
            """Start to wait for the head of a request."""
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            """Start to wait for the body."""
            self._phase, self._since = _BODY, self.loop.time()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """Stop waiting: the request is complete."""
            self._phase = _ANSWER
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            """Read what came; close the connection if the head does not end."""
            super().data_received(data)
            if self._phase == _BODY:
                self._since = self.loop.time()
            elif self._phase == _HEAD:
                self._head += len(data)
                if self._head > _HEAD_BYTES:
                    self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
                    self.transport.close()

        def close_if_late(self, now: float) -> None:
            """Close the connection if its request takes too long to arrive."""
            waited = now - self._since
            if (self._phase == _HEAD and waited > _HEAD_SECONDS) or (self._phase == _BODY and waited > _BODY_SECONDS):
                self.transport.abort()

    return LimitedProtocol


async def watch(connections: set[Any]) -> None:
    """Close connections whose requests take too long to arrive; until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        now = asyncio.get_running_loop().time()
        for connection in list(connections):
            if hasattr(connection, "close_if_late"):  # not a web socket
                connection.close_if_late(now)
