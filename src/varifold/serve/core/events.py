"""Events: the latest ones, and a queue for each subscriber."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from varifold.base.atomic import replace_file

KEPT = 500
_BACKLOG = 256
_RESERVED = 1_000


class Events:
    """The latest events in bounded memory; a listener that is too slow loses the oldest ones.

    Their numbers go on after a restart, so that a listener may ask for what follows the last one it saw. The file
    holds a number that no event has reached yet: after a crash some numbers are left out, none is given twice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text("ascii", "replace").strip() if path.exists() else ""
        self.number = self._reserved = int(text) if text.isdigit() else 0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.latest: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()

    def add(self, model: str, kind: str, text: str, **more: Any) -> dict[str, Any]:
        """Record an event and hand it to every listener."""
        self.number += 1
        if self.number > self._reserved:
            self._reserve(self.number + _RESERVED)
        event = {"number": self.number, "time": int(time.time() * 1000), "model": model, "kind": kind, "text": text}
        event.update(more)
        self.counts[model, kind] += 1
        self.latest.append(event)
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)
        return event

    def _reserve(self, number: int) -> None:
        """Note that events have numbers up to this one. An event may say that the disk fails: it is given anyway."""
        with contextlib.suppress(OSError):
            replace_file(self._path, b"%d\n" % number)
            self._reserved = number

    def close(self) -> None:
        """At a clean stop: the next event has the next number."""
        if self.number != self._reserved:
            self._reserve(self.number)

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue of the events from now on."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_BACKLOG)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Listen no longer."""
        self._listeners.discard(queue)
