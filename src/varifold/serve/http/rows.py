"""Rows: many instances in one request (NDJSON), or one after another on a web socket."""

from __future__ import annotations

import asyncio
from typing import Any

from varifold.errors import VarifoldError
from varifold.serve.core.bodies import changes, check_row, parse
from varifold.serve.core.errors import BusyError, RequestError
from varifold.serve.core.group_commit import Writer
from varifold.serve.core.journal import ROWS
from varifold.serve.extra import orjson
from varifold.serve.http.messages import Receive, Send, encode

_CHUNK_SECONDS = 0.005
_FEWEST, _MOST = 16, 1_000
_WINDOW = 512
"""Messages of a web socket that may be under way."""


async def answer_rows(writer: Writer, body: bytes) -> bytes:
    """One line of JSON per line: answers, or errors for the rows that were refused."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    out: list[bytes] = []
    at, size = 0, _FEWEST
    loop = asyncio.get_running_loop()
    while at < len(lines):
        started = loop.time()
        out.extend(await _answer_chunk(writer, lines[at : at + size]))
        at += size
        if loop.time() - started < _CHUNK_SECONDS:
            size = min(_MOST, 2 * size)
        elif size > _FEWEST:
            size = max(_FEWEST, size // 2)
        await asyncio.sleep(0)
    return b"\n".join(out) + b"\n" if out else b""


async def _answer_chunk(writer: Writer, lines: list[bytes]) -> list[bytes]:
    bodies: list[dict[str, Any]] = []
    kept: list[bytes] = []
    refused: dict[int, bytes] = {}
    for i, line in enumerate(lines):
        try:
            body = orjson.loads(line)
            if type(body) is not dict:
                body = parse(line)
            check_row(body)
        except orjson.JSONDecodeError as error:
            refused[i] = encode({"error": f"the row is not JSON: {error}", "status": 400})
            continue
        except RequestError as error:
            refused[i] = encode({"error": str(error), "status": error.status})
            continue
        bodies.append(body)
        if changes(body):
            kept.append(line.strip())
    answers = await _submitted(writer, bodies, kept)
    if not refused:
        return [encode(found) for found in answers]
    rest = iter(answers)
    return [refused[i] if i in refused else encode(next(rest)) for i in range(len(lines))]


async def _submitted(writer: Writer, bodies: list[dict[str, Any]], kept: list[bytes]) -> list[dict[str, Any]]:
    if not kept:
        return [predicted(writer, body) for body in bodies]
    while True:
        try:
            found: list[dict[str, Any]] = await writer.submit(ROWS, b"\n".join(kept), bodies, len(kept))
        except BusyError:
            await asyncio.sleep(0.01)  # the client has sent everything already: it waits for us, not we for it
        else:
            return found


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
        body = parse(data)
        check_row(body)
        if changes(body):
            return writer.submit(ROWS, data.replace(b"\n", b" "), [body])
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
