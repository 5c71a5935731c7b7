"""Reading ahead: batches are made in a thread while whoever asked for the last one works on it.

What the batches share (names, labels, the count of rows left out) grows only while the next batch is being waited for,
so that it is at every batch what it would be without the thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from varifold.streams.stream import Batch

__all__ = ["read_ahead"]

_READY = 3
"""Batches that may wait, another one being made: room for when the two are not equally fast all the time."""
NAME = "varifold-reader"


class _StoppedError(Exception):
    """Nobody wants further batches."""


class _Handover:
    """What the two threads say to each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ready: deque[Batch] = deque()
        self._asked = False
        self._ended = False
        self._stopped = False
        self._error: BaseException | None = None

    # ---------------------------------------------------------------- the thread that reads

    def wait_for_turn(self) -> None:
        """Return when the batch being made is the one that is waited for."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or (self._asked and not self._ready))
            if self._stopped:
                raise _StoppedError

    def put(self, batch: Batch) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or len(self._ready) < _READY)
            if self._stopped:
                raise _StoppedError
            self._ready.append(batch)
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    # ---------------------------------------------------------------- the thread that asks

    def get(self) -> Batch | None:
        """The next batch, None after the last; an error of the reading comes where its batch would."""
        with self._changed:
            self._asked = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._ready) or self._ended)
            self._asked = False
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
        if self._error is not None:
            raise self._error
        return None

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def read_ahead(
    first: Batch, batches: Iterator[Batch], before_new: Callable[[Callable[[], None]], None]
) -> Iterator[Batch]:
    """The first batch and then the others, which are made in a thread from now on.

    `before_new` is given the function that the reader has to call before it adds to what batches share.
    """
    handover = _Handover()
    before_new(handover.wait_for_turn)

    def work() -> None:
        try:
            for batch in batches:
                handover.put(batch)
        except _StoppedError:
            handover.end()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the thread that asked
            handover.end(error)
        else:
            handover.end()

    thread = threading.Thread(target=work, name=NAME, daemon=True)
    thread.start()
    try:
        yield first
        while (batch := handover.get()) is not None:
            yield batch
    finally:
        handover.stop()
        thread.join()
