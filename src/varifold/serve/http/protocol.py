"""Connections: limits on their number, on the time for a request to arrive and its response to be read, on its head.

uvicorn has no such limits before a request is complete: even without a token, a client could exhaust the file
descriptors of the process with idle connections, and its memory with endless header lines. At the limit a new
connection replaces those that wait for a request, or idle ones would keep out everybody. Requests of `direct` are
handled here, the others by uvicorn.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import heapq
import resource
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from varifold.serve.core.errors import BusyError
from varifold.serve.core.log import warning
from varifold.serve.http.direct import LONGEST, Exchange

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    from varifold.serve.http.app import App
else:
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:  # the server reports a missing extra before it makes a protocol
        HttpToolsProtocol = object

_HEAD, _BODY, _RESPONSE, _IDLE = range(4)
_HEAD_BYTES = 64 << 10
_HEAD_SECONDS = 10.0
_MOST_PIPELINED = 256
"""Requests of a connection that wait for the responses to those before them; one packet may hold thousands."""
_BODY_SECONDS = 60.0
"""Seconds for which a body may pause."""
_BODY_RATE = 10.0
"""Bytes per second below which a body counts as pausing."""
_RESPONSE_SECONDS = 60.0
"""Seconds for which a client may leave a response unread."""
_RESERVED = 128
"""File descriptors reserved for the state and the libraries."""
_DEFAULT_MOST = 4_096


def most_connections(requested: int | None) -> int:
    """Return the most connections: the requested number, as far as the file descriptors of the process allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _DEFAULT_MOST if soft == resource.RLIM_INFINITY else max(16, soft - _RESERVED)
    return min(_DEFAULT_MOST if requested is None else requested, allowed)


def close_waiting(*groups: set[Any]) -> bool:
    """Close the connections that have waited longest for a request, a sixteenth of all; return whether there were any.

    Those between two requests come last: their clients may be about to use them. Many are closed at once, because all
    are searched.
    """
    waiting = [each for group in groups for each in group if getattr(each, "waits", False)]  # web sockets do not
    most = max(1, sum(map(len, groups)) // 16)
    longest = heapq.nsmallest(most, waiting, key=lambda each: each.order())
    for each in longest:
        each.drop()
        for group in groups:
            group.discard(each)  # counted no more, although the event loop closes it later
    return bool(longest)


class Certificate:
    """Certificate of the server and its key."""

    def __init__(self, cert: Path, key: Path) -> None:
        self.cert = cert
        self._key = key
        self.context = self._read()

    def reload(self) -> None:
        """Read the files again, for new connections; after an error the known certificate stays."""
        self.context = self._read()

    def _read(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.cert, self._key)
        return context


class _Handshake:
    """A connection whose handshake is under way: like one that has sent no request."""

    waits = True

    def __init__(self, task: asyncio.Task[None], since: float) -> None:
        self._task = task
        self._since = since

    def order(self) -> tuple[bool, float]:
        """Return the place among the waiting connections that are closed for others."""
        return False, self._since

    def drop(self) -> None:
        """Close the connection."""
        self._task.cancel()


def _discard(under_way: set[_Handshake], handshake: _Handshake, _: asyncio.Task[None]) -> None:
    under_way.discard(handshake)


async def accept_tls(
    listening: socket.socket,
    make: Callable[[], asyncio.Protocol],
    certificate: Certificate,
    connections: set[Any],
    most: int,
) -> None:
    """Accept connections with TLS, until cancelled.

    Those whose handshake is not complete count like the others, and are limited in time: a server of asyncio knows
    nothing of them, so that they could exhaust the file descriptors of the process.
    """
    loop = asyncio.get_running_loop()
    under_way: set[_Handshake] = set()

    async def shake_hands(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client's; also errors of TLS, and timeouts
            await loop.connect_accepted_socket(
                make, connection, ssl=certificate.context, ssl_handshake_timeout=_HEAD_SECONDS
            )

    try:
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                warning(f"a connection could not be accepted: {error}")
                await asyncio.sleep(1.0)
                continue
            if len(connections) + len(under_way) >= most and not close_waiting(connections, under_way):
                connection.close()
                await asyncio.sleep(0)
                continue
            task = loop.create_task(shake_hands(connection))
            under_way.add(handshake := _Handshake(task, loop.time()))
            task.add_done_callback(functools.partial(_discard, under_way, handshake))
            await asyncio.sleep(0)  # until what was closed has released its file descriptor
    finally:
        for each in under_way:
            each.drop()


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if a request arrives or its response is read too slowly, or its head is too long."""

    served: ClassVar[App]
    most: ClassVar[int]
    """Most connections."""
    longest: ClassVar[int]
    """Most bytes of a body that is handled without ASGI."""
    _phase = _BODY  # a new connection is not closed for its own sake
    _ready: Exchange | None = None
    _invalid: str | None = None  # why what follows the requests in progress is no request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many."""
        super().connection_made(transport)
        self._read = self.loop.time()
        full = len(self.connections) > self.most and not close_waiting(self.connections)
        self._expect_head()
        if full:
            transport.abort()

    @property
    def waits(self) -> bool:
        """Whether the connection waits for a request, and no response is in progress."""
        answered = (self.cycle is None or self.cycle.response_complete) and not self.transport.get_write_buffer_size()
        return self._phase in (_HEAD, _IDLE) and answered and not self.transport.is_closing()

    def order(self) -> tuple[bool, float]:
        """Return the place among the waiting connections that are closed for others."""
        return self._phase == _IDLE, self._since

    def drop(self) -> None:
        """Close the connection for another one."""
        self.transport.abort()

    def _expect_head(self) -> None:
        self._phase, self._head, self._since = _HEAD, 0, self.loop.time()

    def on_message_begin(self) -> None:
        """Start the timeout for the head of a request; an error here ends the parsing of what was received."""
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise BusyError(f"more than {_MOST_PIPELINED} requests wait for responses")
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Start the timeout for the body."""
        self._phase, self._since = _BODY, self.loop.time()
        exchange = self._direct_exchange()
        if exchange is None:
            super().on_headers_complete()
        else:
            self.cycle = exchange  # type: ignore[assignment]

    def _direct_exchange(self) -> Exchange | None:
        """Return an exchange for a request that needs no ASGI."""
        found = self.served.direct(self.url)
        if found is None or self.parser.get_method() != b"POST" or self.expect_100_continue:
            return None
        if (self.cycle is not None and not self.cycle.response_complete) or self.flow.write_paused:
            return None  # responses are sent in order, and to clients that read them
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        if not 0 < len(length) < 7 or int(length) > self.longest or not self.parser.should_keep_alive():
            return None
        return None if self.parser.should_upgrade() else Exchange(self.served, self, *found, headers)

    def on_message_complete(self) -> None:
        """Stop the timeout: the request is complete."""
        self._phase = _RESPONSE
        super().on_message_complete()
        cycle: Any = self.cycle
        if type(cycle) is Exchange:
            self._ready = cycle

    def on_direct_response(self) -> None:
        """Continue with the next request, after the response to one that needed no ASGI."""
        if self.pipeline or self._invalid is not None:
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._expect_request()

    def _expect_request(self) -> None:
        """Start the timeout for the next request, which has not begun; blank lines do not begin one."""
        if self._phase == _RESPONSE:
            self._phase, self._since = _IDLE, self.loop.time()

    def on_response_complete(self) -> None:
        """Continue with the next request; reject what follows the last one if it is no request."""
        last = not self.pipeline
        super().on_response_complete()
        if last and self._invalid is not None and not self.transport.is_closing():
            super().send_400_response(self._invalid)
        elif last:
            self._expect_request()

    def _should_upgrade(self) -> bool:
        """Return whether the request opens a web socket, which only GET can."""
        return bool(self.parser.get_method() == b"GET" and super()._should_upgrade())

    def send_400_response(self, msg: str) -> None:
        """Reject data that is no request, after the responses to the requests before it."""
        cycle: Any = self.cycle
        if self.pipeline and cycle.more_body:
            self.pipeline.popleft()  # the invalid request, which has not started
        elif cycle is None or cycle.response_complete or cycle.more_body:
            super().send_400_response(msg)
            return
        self._invalid = msg
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        """Go on with a response: the client has read what was written."""
        self._read = self.loop.time()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Process received data; close the connection if the head is too long."""
        self._head += len(data)  # 0 again if a head begins in this data
        super().data_received(data)
        exchange, self._ready = self._ready, None
        if exchange is not None:
            exchange.start()
        if self._phase == _BODY:
            self._since = min(self.loop.time(), self._since + len(data) / _BODY_RATE)
        elif self._phase == _HEAD and self._head > _HEAD_BYTES:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def close_if_late(self, now: float) -> None:
        """Close the connection if its request arrives too slowly, or its response is read too slowly."""
        if self.transport.get_write_buffer_size() == 0:
            self._read = now
        if self.flow.read_paused:  # it is the server that does not read
            self._since = now
        waited = now - self._since
        if (
            (self._phase == _HEAD and waited > _HEAD_SECONDS)
            or (self._phase == _BODY and waited > _BODY_SECONDS)
            or now - self._read > _RESPONSE_SECONDS
        ):
            self.transport.abort()
        elif self._phase == _IDLE and waited > self.timeout_keep_alive:
            self.transport.close()


def protocol_of(app: App, most: int) -> type[LimitedProtocol]:
    """Return the class of the connections of an application, of which there are at most `most`."""
    longest = min(LONGEST, app.limits.body)
    return type("ServedProtocol", (LimitedProtocol,), {"served": app, "most": most, "longest": longest})


async def watch(connections: set[Any]) -> None:
    """Close connections whose requests arrive too slowly, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        now = asyncio.get_running_loop().time()
        for connection in list(connections):
            if hasattr(connection, "close_if_late"):  # not a web socket
                connection.close_if_late(now)
