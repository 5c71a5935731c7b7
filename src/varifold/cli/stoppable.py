"""Stop a run early at a signal or a row that cannot be read, and still report and save what was learned."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from varifold.errors import DataError, VarifoldError
from varifold.streams.stream import Batch, Stream


class Stoppable(Stream):
    """A stream that ends after the current batch when SIGINT or SIGTERM arrives, or where it cannot be read further."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._reading = False
        self.once, self.delay, self.scored_from = stream.once, stream.delay, stream.scored_from
        self.label_share, self.label_seed = stream.label_share, stream.label_seed
        self.signal = 0
        """Signal that arrived, 0 without one."""
        self.error: DataError | None = None
        """Error that ended the stream; an error in the first batch is raised instead."""

    @property
    def reason(self) -> str | None:
        """Return why the stream ended early: the error or the name of the signal; None if it did not."""
        if self.error is not None:
            return str(self.error)
        return signal.Signals(self.signal).name if self.signal else None

    def batches(self) -> Iterator[Batch]:
        """Yield the batches until the stream ends or is stopped."""
        batches, begun = self._stream.batches(), False
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
            yield batch

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: interrupt a stream that waits for input; a second signal ends the process at once."""
        if self._reading or self.signal:
            self.signal = number
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stoppable(stream: Any) -> Iterator[Stoppable]:
    """Let SIGINT and SIGTERM stop the stream within the with block; an error in reading hides the errors it causes."""
    stopped = Stoppable(stream)
    before = {number: signal.signal(number, stopped.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    except VarifoldError:
        if stopped.error is None:
            raise
        raise stopped.error from None  # for example, the positive label may only occur in the rows that were not read
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
