"""Rows: many instances in one request (NDJSON), or one after another on a web socket."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from varifold.errors import VarifoldError
from varifold.serve.core.bodies import changes, read_row
from varifold.serve.core.errors import BusyError, RequestError
from varifold.serve.core.group_commit import Writer
from varifold.serve.core.journal import ROWS
from varifold.serve.core.state import ModelState
from varifold.serve.http.messages import Receive, Send, encode

_CHUNK_SECONDS = 0.005
"""How long the rows of a chunk may keep others waiting."""
_PARSING = 3e-6
_FEWEST, _MOST = 16, 1_000
_CHUNKS = 3
_WINDOW = 512
"""Messages of a web socket that may be under way."""


async def answer_rows(writer: Writer, body: bytes) -> bytes:
    """One line of JSON per line: answers, or errors for the rows that were refused.

    Rows go to the writer in chunks, a few of them under way at a time: one is parsed while another is synced.
    """
    lines = [line for line in body.split(b"\n") if line.strip()]
    under_way: deque[_Chunk] = deque()
    out: list[bytes] = []
    at = 0
    while at < len(lines):
        size = max(_FEWEST, min(_MOST, int(_CHUNK_SECONDS / (writer.store.row_seconds + _PARSING))))
        under_way.append(await _Chunk(writer.store.state, lines[at : at + size]).submitted(writer))
        at += size
        if len(under_way) >= _CHUNKS:
            out.extend(await under_way.popleft().answers())
        await asyncio.sleep(0)
    for chunk in under_way:
        out.extend(await chunk.answers())
    return b"\n".join(out) + b"\n" if out else b""


class _Chunk:
    """Some rows of a batch on their way."""

    def __init__(self, state: ModelState, lines: list[bytes]) -> None:
        self.rows = len(lines)
        self.bodies: list[dict[str, Any]] = []
        self.changes: list[bytes] = []
        self.refused: dict[int, bytes] = {}
        self.done: asyncio.Future[Any] | None = None
        self.predicted: list[dict[str, Any]] = []
        for i, line in enumerate(lines):
            try:
                body = read_row(line)
                changing = changes(body)
                if changing:
                    state.check(body)
            except RequestError as error:
                self.refused[i] = encode({"error": str(error).replace("the body", "the row"), "status": error.status})
                continue
            self.bodies.append(body)
            if changing:
                self.changes.append(line.strip())

    async def submitted(self, writer: Writer) -> _Chunk:
        """Hand the rows to the writer; it waits for a busy one, as the client has sent everything already."""
        if not self.changes:
            self.predicted = [predicted(writer, body) for body in self.bodies]
            return self
        while self.done is None:
            try:
                self.done = writer.submit(ROWS, b"\n".join(self.changes), self.bodies, len(self.changes))
            except BusyError:
                await asyncio.sleep(0.01)
        return self

    async def answers(self) -> list[bytes]:
        """One line per row, once what they change is on disk."""
        found = self.predicted if self.done is None else await self.done
        if not self.refused:
            return [encode(one) for one in found]
        rest = iter(found)
        return [self.refused[i] if i in self.refused else encode(next(rest)) for i in range(self.rows)]


def predicted(writer: Writer, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of a row that changes nothing."""
    try:
        return writer.store.state.predict(body)
    except VarifoldError as error:
        return {"error": str(error), "status": getattr(error, "status", 422)}


async def stream(writer: Writer, receive: Receive, send: Send, most: int) -> None:
    """A web socket: each message is a row, and its answer comes back in the same order."""
    await send({"type": "websocket.accept"})
    window: asyncio.Queue[asyncio.Future[Any] | bytes | None] = asyncio.Queue(_WINDOW)
    sender = asyncio.get_running_loop().create_task(_send_answers(window, send))
    try:
        while (message := await receive())["type"] == "websocket.receive":
            text = message.get("text")
            data = text.encode("utf-8", "replace") if text is not None else message["bytes"]
            await window.put(_start(writer, data, most))
    finally:
        await window.put(None)
        await sender


def _start(writer: Writer, data: bytes, most: int) -> asyncio.Future[Any] | bytes:
    try:
        if len(data) > most:
            raise RequestError(f"the message has {len(data):,} bytes; at most {most:,} are taken")
        if b"\n" in data:
            data = data.replace(b"\n", b" ")  # as the journal has it
        body = read_row(data)
        if changes(body):
            writer.store.state.check(body)
            return writer.submit(ROWS, data, [body])
    except RequestError as error:
        return encode({"error": str(error), "status": error.status})
    return encode(predicted(writer, body))


async def _send_answers(window: asyncio.Queue[asyncio.Future[Any] | bytes | None], send: Send) -> None:
    while (found := await window.get()) is not None:
        if not isinstance(found, bytes):
            try:
                found = encode((await found)[0])
            except RequestError as error:
                found = encode({"error": str(error), "status": error.status})
        try:
            await send({"type": "websocket.send", "text": found.decode()})
        except OSError:
            continue  # the client is gone; what it sent is still committed
