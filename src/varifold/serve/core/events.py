"""Events: the latest ones, and a queue for each subscriber."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from typing import Any

KEPT = 500
_BACKLOG = 256


class Events:
    """The latest events in bounded memory; a listener that is too slow loses the oldest ones."""

    def __init__(self) -> None:
        self.number = 0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.latest: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()

    def add(self, model: str, kind: str, text: str, **more: Any) -> dict[str, Any]:
        """Record an event and hand it to every listener."""
        self.number += 1
        event = {"number": self.number, "time": int(time.time() * 1000), "model": model, "kind": kind, "text": text}
        event.update(more)
        self.counts[model, kind] += 1
        self.latest.append(event)
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)
        return event

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue of the events from now on."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_BACKLOG)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Listen no longer."""
        self._listeners.discard(queue)
