"""Rows: many instances in one request (NDJSON), or one after another on a web socket."""

from __future__ import annotations

import asyncio
import io
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from varifold.base.plural import plural
from varifold.errors import VarifoldError
from varifold.serve.core.errors import BusyError, RequestError, shortened
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Model
from varifold.serve.http.messages import Receive, Send, encode

_CHUNK_SECONDS = 0.005
"""Seconds for which the rows of a chunk may block other requests."""
_PARSING = 3e-6
_FEWEST, _MOST = 16, 1_000
_CHUNK_BYTES = 1 << 20
"""Bytes of rows from which a chunk takes no more of them."""
_CHUNKS = 12
"""Most chunks in progress: enough that the disk and the learner need not wait for each other."""
_MOST_REJECTED = 1_000
"""Rejected rows after which the rest of a batch is not read."""
_WINDOW = 512
"""Most messages of a web socket that are in progress."""


async def apply_rows(model: Model, body: bytes) -> AsyncIterator[bytes]:
    """Yield one line of JSON per row, as chunks of rows reach the disk: results, or errors for rejected rows.

    A few chunks are in progress at a time: one is applied while another is written.
    """
    lines = io.BytesIO(body)  # one line at a time: a list of two-byte rows would be fifty times as large as the body
    under_way: deque[_Chunk] = deque()
    rejected, more = 0, True
    while under_way or more:
        if more and len(under_way) < _CHUNKS and rejected < _MOST_REJECTED:
            # as many rows as take _CHUNK_SECONDS, so that results come steadily with slow and fast learners
            size = max(_FEWEST, min(_MOST, int(_CHUNK_SECONDS / (model.row_seconds + _PARSING))))
            chunk = _Chunk(model.state.rules, lines, size)
            more = not chunk.is_last
            if chunk.rows:
                await chunk.submit(model)
                under_way.append(chunk)
            await asyncio.sleep(0)
            continue
        if not under_way:
            break
        chunk = under_way.popleft()
        yield await chunk.output()
        rejected += chunk.rejected
    if more and lines.read(1):
        text = f"{plural(rejected, 'row')} rejected; the rest of the batch was not read"
        yield encode({"error": text, "status": 422}) + b"\n"


class _Chunk:
    """Rows of a batch that are in progress."""

    def __init__(self, rules: InputRules, lines: io.BytesIO, most: int) -> None:
        self.rows = 0
        self.rejected = 0
        self.is_last = False
        self._errors: dict[int, bytes] = {}
        self._applied: list[tuple[dict[str, Any], bytes]] = []
        self._bytes = 0
        self._done: asyncio.Future[Any]
        for _ in range(most):
            if self._bytes >= _CHUNK_BYTES:
                return
            line = lines.readline()
            if not line:
                self.is_last = True
                return
            text = line.strip()
            if not text:
                continue
            try:
                row = rules.parse_row(text)
                self._applied.append(row)
                self._bytes += len(row[1])
            except RequestError as error:
                reason = shortened(error).replace("the body", "the row")
                self._errors[self.rows] = encode({"error": reason, "status": error.status})
            self.rows += 1

    async def submit(self, model: Model) -> None:
        """Apply the rows; if too much waits for the disk, wait too: the client has already sent everything."""
        while True:
            try:
                self._done = model.submit_rows(self._applied, self._bytes)
                self._applied = []
                return
            except BusyError:
                await asyncio.sleep(0.01)

    async def output(self) -> bytes:
        """Return one line per row, once their changes are on disk."""
        out = [self._line(result) for result in await self._done]
        for i, line in self._errors.items():
            out.insert(i, line)
        self.rejected += len(self._errors)
        return b"\n".join(out) + b"\n"

    def _line(self, result: dict[str, Any]) -> bytes:
        if len(result) == 1:  # the sequence number: ten times as fast as orjson, which allocates 1 KiB per line
            return b'{"seq":%d}' % result["seq"]
        self.rejected += "error" in result
        return encode(result)


async def stream(model: Model, receive: Receive, send: Send, most: int, allowed: Callable[[], bool]) -> None:
    """Serve a web socket: each message is a row, and the results are sent in the same order.

    It is closed at the first message that its token does not allow anymore.
    """
    await send({"type": "websocket.accept"})
    window: asyncio.Queue[asyncio.Future[Any] | bytes | None] = asyncio.Queue(_WINDOW)
    sender = asyncio.get_running_loop().create_task(_send_results(window, send))
    try:
        while (message := await receive())["type"] == "websocket.receive":
            if not allowed():
                break
            text = message.get("text")
            data = text.encode("utf-8", "replace") if text is not None else message["bytes"]
            await model.turn()
            await window.put(_start(model, data, most))
    finally:
        await window.put(None)
        await sender
    if message["type"] == "websocket.receive":
        await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})


def _start(model: Model, data: bytes, most: int) -> Any:
    try:
        if len(data) > most:
            raise RequestError(f"the message has {len(data):,} bytes; at most {most:,} are accepted")
        return model.submit(*model.state.rules.parse_row(data))
    except RequestError as error:
        return encode({"error": shortened(error), "status": error.status})


async def _send_results(window: asyncio.Queue[asyncio.Future[Any] | bytes | None], send: Send) -> None:
    while (result := await window.get()) is not None:
        if not isinstance(result, bytes):
            try:
                result = encode(await result)
            except VarifoldError as error:
                result = encode({"error": shortened(error), "status": getattr(error, "status", 422)})
        try:
            await send({"type": "websocket.send", "text": result.decode()})
        except OSError:
            continue  # the client is gone; what it sent is still committed
