"""Learn and predict of one instance, handled without ASGI.

An ASGI application costs a task, an event and four messages per request, about as much as everything else that a learn
needs. A short request to one of these two routes is passed to the model as soon as its body is complete, and the
response is written when the transaction that stores the change is on disk. All other requests go through ASGI: long
bodies, bodies in chunks, pipelined requests, clients that do not read, models that share the event loop by turns.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from varifold.serve.core.log import failure
from varifold.serve.http.messages import Response, encode

if TYPE_CHECKING:
    from varifold.serve.http.app import App, Route

LONGEST = 32 << 10
"""Most bytes of a body; uvicorn pauses a connection at 64 KiB."""
_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Exchange:
    """A request and its response. To uvicorn it is the cycle of its connection, to the committer a future."""

    __slots__ = (
        "_app",
        "_headers",
        "_name",
        "_protocol",
        "_route",
        "_started",
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "response_complete",
    )  # fmt: skip

    unused_event = asyncio.Event()

    def __init__(self, app: App, protocol: Any, route: Route, name: str, headers: dict[bytes, bytes]) -> None:
        self.body = b""
        self.disconnected = False
        self.keep_alive = True
        self.message_event = self.unused_event
        self.more_body = True
        self.response_complete = False
        self._app = app
        self._headers = headers
        self._name = name
        self._protocol = protocol
        self._route = route
        self._started = time.perf_counter()

    def start(self) -> None:
        """Handle the request, whose body is complete."""
        app, route = self._app, self._route
        assert route.start is not None
        try:
            access = app.access(self._headers.get, route, self._name)
            if isinstance(access, Response):
                result: Any = access
            else:  # the model may have been replaced while the body arrived
                result = route.start(app.models[self._name], self.body, access, self)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a response
            self.set_exception(error)
            return
        if isinstance(result, Response):
            self._respond(result)
        elif result is not self:
            self.set_result(result)

    def done(self) -> bool:
        """Return whether the response was written."""
        return self.response_complete

    def set_result(self, result: Any) -> None:
        """Respond with a result."""
        try:
            response = Response(encode(result))
        except Exception as error:  # noqa: BLE001 - the committer must go on with the other responses
            self.set_exception(error)
            return
        self._respond(response)

    def set_exception(self, error: Exception) -> None:
        """Respond with an error."""
        response = self._app.error_of(self._route.name, error)
        if response is None:
            failure(f"{self._route.name} failed", error=error)
            response = Response(encode({"error": "the server failed at this request; see its log"}), 500)
            self.keep_alive = False
        self._respond(response)

    def _respond(self, response: Response) -> None:
        self.response_complete = True
        transport = self._protocol.transport
        if not self.disconnected and not transport.is_closing():
            transport.write(_bytes_of(response, keep_alive=self.keep_alive))
            if not self.keep_alive:
                transport.close()
        self._protocol.on_direct_response()
        self._app.metrics.count(self._route.name, response.status, time.perf_counter() - self._started)


def _bytes_of(response: Response, *, keep_alive: bool) -> bytes:
    """Return a response as HTTP/1.1."""
    if response.status == 200 and keep_alive:
        return _OK % (len(response.body), response.body)
    headers = response.all_headers()
    if not keep_alive:
        headers.append((b"connection", b"close"))
    status = HTTPStatus(response.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), *(b"%b: %b" % header for header in headers)]
    return b"\r\n".join([*lines, b"", response.body])
