"""Events: the latest ones, and a queue for each subscriber."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

KEPT = 500
_BACKLOG = 256
_SKIPPED = 1_000
_LONGEST = 1_000
"""Most characters of an event's text, which may repeat what a client sent."""


class Events:
    """Latest events in bounded memory; a listener that is too slow loses the oldest ones.

    Events are stored, and their numbers continue after a restart, so that a listener can request those after the last
    one it received. After a crash some numbers are skipped, so that none is used twice: events are sent before they
    are stored.
    """

    def __init__(
        self, stored: Iterable[dict[str, Any]] = (), *, clean: bool = True,
        store: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> None:  # fmt: skip
        self.counts: Counter[tuple[str, str]] = Counter()
        self.latest: deque[dict[str, Any]] = deque(stored, maxlen=KEPT)
        self.number = (self.latest[-1]["number"] if self.latest else 0) + (0 if clean else _SKIPPED)
        self.before = self.number
        """Number of the last event before this start."""
        self._store = store
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()

    def add(self, model: str, kind: str, text: str, **more: Any) -> dict[str, Any]:
        """Record an event, store it, and send it to every listener."""
        self.number += 1
        event = {"number": self.number, "time": int(time.time() * 1000), "model": model, "kind": kind}
        event["text"] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        event.update(more)
        self.counts[model, kind] += 1
        self.latest.append(event)
        self._store(event)
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)
        return event

    def forget(self, model: str) -> None:
        """Drop the counts of a model that was deleted."""
        for key in [key for key in self.counts if key[0] == model]:
            del self.counts[key]

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """Return a queue that receives all events from now on."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_BACKLOG)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Stop listening."""
        self._listeners.discard(queue)
