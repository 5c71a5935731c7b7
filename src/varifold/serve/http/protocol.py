"""Limits on connections: their number, the time for a request to arrive, the size of its head.

uvicorn has no such limits before a request is complete: even without a token, a client could exhaust the file
descriptors of the process with idle connections, and its memory with endless header lines.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

_HEAD, _BODY, _RESPONSE = range(3)
_HEAD_BYTES = 64 << 10
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 60.0
"""Seconds for which a body may pause."""
_RESERVED = 128
"""File descriptors reserved for the state and the libraries."""
_DEFAULT_MOST = 4_096


def most_connections(requested: int | None) -> int:
    """Return the most connections: the requested number, as far as the file descriptors of the process allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DEFAULT_MOST if soft == resource.RLIM_INFINITY else max(16, soft - _RESERVED)
    return min(_DEFAULT_MOST if requested is None else requested, allowed)


def make_protocol(most: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with the limits; the class is defined here because uvicorn is an extra."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class LimitedProtocol(HttpToolsProtocol):
        """A connection that is closed if a request arrives too slowly or its head is too long."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Accept a connection, unless there are too many."""
            super().connection_made(transport)
            self._expect_head()
            if len(self.connections) > most:
                transport.abort()

        def _expect_head(self) -> None:
            self._phase, self._head, self._since = _HEAD, 0, self.loop.time()

        def on_message_begin(self) -> None:
            """Start the timeout for the head of a request."""
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            """Start the timeout for the body."""
            self._phase, self._since = _BODY, self.loop.time()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """Stop the timeout: the request is complete."""
            self._phase = _RESPONSE
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            """Process received data; close the connection if the head is too long."""
            super().data_received(data)
            if self._phase == _BODY:
                self._since = self.loop.time()
            elif self._phase == _HEAD:
                self._head += len(data)
                if self._head > _HEAD_BYTES:
                    self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
                    self.transport.close()

        def close_if_late(self, now: float) -> None:
            """Close the connection if its request arrives too slowly."""
            waited = now - self._since
            if (self._phase == _HEAD and waited > _HEAD_SECONDS) or (self._phase == _BODY and waited > _BODY_SECONDS):
                self.transport.abort()

    return LimitedProtocol


async def watch(connections: set[Any]) -> None:
    """Close connections whose requests arrive too slowly, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        now = asyncio.get_running_loop().time()
        for connection in list(connections):
            if hasattr(connection, "close_if_late"):  # not a web socket
                connection.close_if_late(now)
