"""Group commit: changes that arrive while the disk is busy are written in one transaction, then acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from varifold.serve.core.database import Database, Written
from varifold.serve.core.errors import BusyError, StoppedError
from varifold.serve.core.state import ModelState

MOST_PENDING = 4_096
MOST_PENDING_BYTES = 64 << 20


class Acknowledgement(Protocol):
    """Gets the response to a change once that is on disk: a future, or what can be one."""

    def done(self) -> bool:
        """Return whether nobody waits anymore."""

    def set_result(self, result: Any) -> None:
        """Accept the response."""

    def set_exception(self, error: Exception) -> None:
        """Accept the reason why the change is not on disk."""


Waiting = list[tuple[Acknowledgement, Any]]


class Committer:
    """Writes the changes of all models of a folder; runs on the event loop, with one thread for the disk.

    A model applies a change and passes the response to `acknowledge`; the returned future gets it once the transaction
    with the change is on disk. ``on_fatal`` is called once if the disk fails; from then on every change is rejected.
    """

    def __init__(self, database: Database, on_fatal: Callable[[str], None], *, one_by_one: bool = False) -> None:
        self.database = database
        self.commits = 0
        self.stopped: str | None = None
        self.disk = ThreadPoolExecutor(1, thread_name_prefix="database")
        """Sole thread that uses the database; it runs its tasks in order."""
        self.packing = ThreadPoolExecutor(2, thread_name_prefix="snapshot")
        """Threads that wait for the child processes that pack snapshots."""
        self._on_fatal = on_fatal
        self._one_by_one = one_by_one
        self._loop = asyncio.get_running_loop()
        self._waiting: Waiting = []
        self._groups: list[tuple[list[Written], Waiting]] = []
        self._changed: dict[str, ModelState] = {}
        self._events: list[dict[str, Any]] = []
        self._bytes = 0
        self._busy = False
        self._idle = asyncio.Event()
        self._idle.set()

    def check(self) -> None:
        """Reject a change if too many wait for the disk, or if nothing can be written anymore."""
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        pending = len(self._waiting) + len(self._groups)
        if pending >= MOST_PENDING or self._bytes > MOST_PENDING_BYTES:
            raise BusyError(f"{pending:,} changes wait for the disk; try again in a second")

    def acknowledge(self, state: ModelState, response: Any, size: int = 0, done: Acknowledgement | None = None) -> Any:
        """Return `done`, or a new future, which gets the response once all that the model has applied is on disk."""
        if done is None:
            done = self._loop.create_future()
        self._waiting.append((done, response))
        self._changed[state.name] = state
        self._bytes += size
        if self._one_by_one:
            self._cut()
        self._wake()
        return done

    def add_event(self, event: dict[str, Any]) -> None:
        """Write an event with the next transaction."""
        self._events.append(event)
        self._wake()

    def _wake(self) -> None:
        if not self._busy and self.stopped is None:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._start)

    def _cut(self) -> None:
        """Close the group: later changes go into the next transaction."""
        written = [one for state in self._changed.values() if (one := state.take_unwritten()) is not None]
        if written or self._waiting:
            self._groups.append((written, self._waiting))
        self._waiting, self._changed, self._bytes = [], {}, 0

    def _start(self) -> None:
        """Write a group: everything that arrived while the previous one was written."""
        if not self._groups:
            self._cut()
        if self.stopped is not None or not (self._groups or self._events):
            self._rest()
            return
        written, waiting = self._groups.pop(0) if self._groups else ([], [])
        events, self._events = self._events, []
        if not written and not events:
            self._written(waiting)
            return
        done = self._loop.run_in_executor(self.disk, self.database.commit, written, events)
        done.add_done_callback(lambda future: self._finished(waiting, future))

    def _finished(self, waiting: Waiting, future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is None:
            self.commits += 1
            self._written(waiting)
            return
        self._groups.insert(0, ([], waiting))
        self.fail(str(error))
        self._rest()

    def _written(self, waiting: Waiting) -> None:
        self._start()  # the disk is busy again while responses are written
        for done, response in waiting:
            if not done.done():
                done.set_result(response)

    def _rest(self) -> None:
        """Pause until there is something to write; if the disk has failed, reject all pending changes."""
        self._busy = False
        self._idle.set()
        if self.stopped is None:
            return
        self._cut()
        for _, waiting in self._groups:
            for done, _ in waiting:
                if not done.done():
                    done.set_exception(StoppedError(self.stopped))
        self._groups = []

    def fail(self, reason: str) -> None:
        """Stop writing and report it, after the disk failed. The state in memory may be ahead of the disk."""
        if self.stopped is None:
            self.stopped = reason
            self._on_fatal(reason)

    async def drain_group(self) -> None:
        """Wait until everything applied so far is on disk, but not for what is applied in the meantime."""
        if self._busy:
            done: asyncio.Future[Any] = self._loop.create_future()
            self._waiting.append((done, None))
            await done

    async def drain(self) -> None:
        """Wait until everything applied is on disk."""
        await self._idle.wait()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a database function in the database's thread."""
        return await self._loop.run_in_executor(self.disk, function, *arguments)
