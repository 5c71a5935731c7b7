"""Read ahead: a thread makes the next batches while the consumer works on the last one.

State that batches share (names, labels, the number of rows left out) grows only while the consumer waits for the next
batch, so the consumer sees the same state as without the thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from varifold.streams.stream import Batch

__all__ = ["read_ahead"]

_READY = 3
"""Batches that may wait while another one is made; they absorb differences in speed."""
NAME = "varifold-reader"


class _StoppedError(Exception):
    """Raised when the consumer needs no further batches."""


class _Handover:
    """Hand batches from the reading thread to the consumer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ready: deque[Batch] = deque()
        self._requested = False
        self._ended = False
        self._stopped = False
        self._error: BaseException | None = None

    # ---------------------------------------------------------------- called by the reading thread

    def wait_for_turn(self) -> None:
        """Wait until the consumer waits for the batch that is being made."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or (self._requested and not self._ready))
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

    # ---------------------------------------------------------------- called by the consumer

    def get(self) -> Batch | None:
        """Return the next batch, None after the last; raise an error of the reader in place of its batch."""
        with self._changed:
            self._requested = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._ready) or self._ended)
            self._requested = False
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
    """Yield the first batch and then the others, which a thread makes from now on.

    `before_new` receives the function that the reader must call before it adds to the shared state.
    """
    handover = _Handover()
    before_new(handover.wait_for_turn)

    def work() -> None:
        try:
            for batch in batches:
                handover.put(batch)
        except _StoppedError:
            handover.end()
        except BaseException as error:  # noqa: BLE001 - every error is raised again in the consumer's thread
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
