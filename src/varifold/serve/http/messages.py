"""Requests and responses of the HTTP API, on top of ASGI."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from varifold.serve.core.errors import RequestError, TooLargeError, shortened
from varifold.serve.extra import orjson
from varifold.serve.http.tokens import EVERYTHING, Grant

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

_PART = 256 << 10
"""Bytes of a response that are sent at a time, and have to be read within a minute."""
JSON, NDJSON = b"application/json", b"application/x-ndjson"


@functools.cache
def _options() -> int:
    return orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def encode(content: Any) -> bytes:
    """Encode as JSON; labels of types that JSON lacks, and whole numbers beyond 64 bits, become text."""
    try:
        return orjson.dumps(content, option=_options(), default=str)
    except TypeError:
        return orjson.dumps(_plain(content), option=_options(), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(key if isinstance(key, str) else str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # a name in a model file may hold half of a surrogate pair
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 else value


@dataclass
class Response:
    """A complete response."""

    body: bytes
    status: int = 200
    kind: bytes = JSON
    headers: list[Header] = field(default_factory=list)

    def all_headers(self) -> list[Header]:
        """Return the headers, with kind and length of the body."""
        return [(b"content-type", self.kind), (b"content-length", b"%d" % len(self.body)), *self.headers]

    async def send(self, send: Send) -> None:
        """Send the response."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.all_headers()})
        for at in range(0, max(1, len(self.body)), _PART):  # `send` waits for a client that reads slowly
            part, more = self.body[at : at + _PART], at + _PART < len(self.body)
            await send({"type": "http.response.body", "body": part, "more_body": more})


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(encode(content), status)


def error_response(error: Exception, status: int) -> Response:
    """Return a JSON response that describes an error."""
    response = json_response({"error": shortened(error)}, status)
    if status == 429:
        response.headers.append((b"retry-after", b"1"))
    if status == 401:
        response.headers.append((b"www-authenticate", b"Bearer"))
    return response


@dataclass
class Request:
    """A request passed to a handler."""

    scope: Scope
    receive: Receive
    send: Send
    argument: str = ""
    """Model or id in the path."""
    grant: Grant = EVERYTHING
    """What the token of the sender allows; everything if no tokens are used."""
    reserve: Callable[[int], None] = lambda size: None
    """Called with the size of each part of a body; raises an error if too much is being received."""
    renewed: Callable[[], Grant | None] = lambda: EVERYTHING
    """Returns what the token allows by now, None for nothing: a response without end outlives a token."""
    _headers: dict[bytes, bytes] | None = None
    _query: dict[str, list[str]] | None = None

    def header(self, name: bytes) -> bytes | None:
        """Return a header by its lower-case name; the last one wins."""
        if self._headers is None:
            self._headers = dict(self.scope["headers"])
        return self._headers.get(name)

    def query(self, name: str) -> str | None:
        """Return a query parameter."""
        if self._query is None:  # a stream of events asks for each event, and a query may have 64 KiB
            self._query = parse_qs(self.scope["query_string"].decode("latin-1"))
        values = self._query.get(name)
        return values[0] if values else None

    async def body(self, most: int) -> bytes:
        """Return the complete body; reject one of more than `most` bytes as early as possible."""
        length = self.header(b"content-length")
        if length is not None and length.isdigit() and int(length) > most:
            raise TooLargeError(f"the body has {int(length):,} bytes; at most {most:,} are accepted")
        parts, size, more = [], 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise RequestError("the connection ended within the body")
            data: bytes = message.get("body", b"")
            parts.append(data)
            self.reserve(len(data))
            size += len(data)
            if size > most:
                raise TooLargeError(f"the body has more than {most:,} bytes")
            more = message.get("more_body", False)
        return b"".join(parts)
