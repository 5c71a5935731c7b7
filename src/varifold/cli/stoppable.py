"""A run that can be stopped: a signal, or a row that cannot be read, ends the stream early, so that what was learned is
reported and saved.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from varifold.base import Block
from varifold.errors import DataError, VarifoldError
from varifold.streams.stream import Batch, Stream, batches_of

_ROWS = 4_096
"""Longest piece: a signal is answered after at most so many instances."""


class Stoppable(Stream):
    """A stream in pieces, which ends at the next one once SIGINT or SIGTERM came, or where it cannot be read on."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._reading = False
        self.once, self.delay, self.scored_from = stream.once, stream.delay, stream.scored_from
        self.signal = 0
        """The signal that came, 0 without one."""
        self.error: DataError | None = None
        """Why the stream could not be read on; an error in its first batch is raised instead."""

    @property
    def reason(self) -> str | None:
        """Why the stream ended early: the error, or the name of the signal; None if it did not."""
        if self.error is not None:
            return str(self.error)
        return signal.Signals(self.signal).name if self.signal else None

    def blocks(self) -> Iterator[Block]:
        """The pieces, in order."""
        return (batch.block for batch in self.batches())

    def batches(self) -> Iterator[Batch]:
        """The pieces with the ids and times of their rows."""
        batches, begun = batches_of(self._stream), False
        while not self.signal:
            try:
                self._reading = True
                batch = next(batches, None)
            except KeyboardInterrupt:
                return
            except DataError as error:
                if not begun:
                    raise
                self.error = error
                return
            finally:
                self._reading = False
            if batch is None:
                return
            begun = True
            for lo in range(0, len(batch.block), _ROWS):
                if self.signal:
                    return
                yield batch.part(lo, lo + _ROWS)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """A signal came; one that waits for input is interrupted, and a second signal ends the process at once."""
        if self._reading or self.signal:
            self.signal = number
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stoppable(stream: Any) -> Iterator[Stoppable]:
    """The stream, stopped by SIGINT and SIGTERM within the block; where it cannot be read on, no other error counts."""
    found = Stoppable(stream)
    before = {number: signal.signal(number, found.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield found
    except VarifoldError:
        if found.error is None:
            raise
        raise found.error from None  # the rows before it have no positive label, for one: it may come behind
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
