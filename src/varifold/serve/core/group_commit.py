"""Group commit: changes that arrive while the disk is busy are written together, then applied and acknowledged."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

from varifold.errors import VarifoldError
from varifold.serve.core import snapshot
from varifold.serve.core.errors import (
    BusyError,
    JournalError,
    RefusedError,
    RequestError,
    StoppedError,
    reason_of,
)
from varifold.serve.core.journal import RESTORE, ROWS, Record
from varifold.serve.core.store import Store

MOST_PENDING = 4_096
MOST_PENDING_BYTES = 64 << 20


class _Pending(NamedTuple):
    record: Record
    body: Any
    done: asyncio.Future[Any]


class Writer:
    """The one writer of a model, on the event loop: journal first, then memory, then the acknowledgement.

    ``on_fatal`` is called once when the journal cannot be written; from then on every change is refused.
    """

    def __init__(
        self,
        store: Store,
        disk: Executor,
        on_fatal: Callable[[str], None],
        on_event: Callable[[str, str], None] = lambda kind, text: None,
    ) -> None:
        self.store = store
        self.stopped: str | None = None
        self.commits = 0
        self.snapshots = 0
        self.snapshot_pauses: deque[float] = deque(maxlen=1_000)
        """Seconds that the latest snapshots held up the writer."""
        self._disk = disk
        self._on_fatal = on_fatal
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._pending: list[_Pending] = []
        self._bytes = 0
        self._busy = False
        self._snapshotting: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    # ------------------------------------------------------------------ changes

    def submit(self, kind: int, payload: bytes, body: Any, rows: int = 1) -> asyncio.Future[Any]:
        """Queue a change; the future has its answer once it is on disk and applied.

        What the learner would refuse is refused here, and never journaled; rows come checked (`ModelState.check`).
        """
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        if kind not in (ROWS, RESTORE):
            self.store.state.check(body)
        if len(self._pending) >= MOST_PENDING or self._bytes > MOST_PENDING_BYTES:
            raise BusyError(f"{len(self._pending):,} changes wait for the disk; try again in a second")
        done: asyncio.Future[Any] = self._loop.create_future()
        self._pending.append(_Pending(Record(kind, payload, rows), body, done))
        self._bytes += len(payload)
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._start)
        return done

    def _start(self) -> None:
        """Write what is pending: all of it, or one record where every change has an fsync of its own."""
        if self.stopped is not None:
            self._after()
            return
        if self.store.policy.fsync == "always":
            group, self._pending = self._pending[:1], self._pending[1:]
        else:
            group, self._pending = self._pending, []
        self._bytes = sum(len(p.record.payload) for p in self._pending)
        frame = self.store.frame([p.record for p in group])
        if not self.store.policy.syncs:
            try:
                self.store.journal.write(frame)
            except JournalError as error:
                self._fail(group, str(error))
                self._after()
                return
            self._written(group)
            return
        written = self._loop.run_in_executor(self._disk, self.store.journal.write, frame)
        written.add_done_callback(lambda future: self._synced(group, future))

    def _synced(self, group: list[_Pending], future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self._fail(group, str(error))
            self._after()
        else:
            self._written(group)

    def _written(self, group: list[_Pending]) -> None:
        """The group is on disk: apply it in order and answer."""
        self.commits += 1
        self.store.committed()
        for record, body, done in group:
            if self.stopped is not None:
                _refuse(done, StoppedError(self.stopped))
                continue
            try:
                result = self.store.apply(record.kind, body, len(record.payload))
            except VarifoldError as error:
                _refuse(done, error)
            except Exception as error:  # noqa: BLE001 - a fault of the learner must not be hidden: the model stops
                traceback.print_exception(error, file=sys.stderr)
                kind = type(error).__name__
                self._stop(f"the model failed at change {self.store.state.seq:,} ({kind}); it takes no more changes")
                _refuse(done, StoppedError(str(self.stopped)))
            else:
                if not done.done():
                    done.set_result(result)
        self._after()

    def _after(self) -> None:
        """Go on with what is pending; a model that has stopped refuses it."""
        if self._snapshotting is None and self.stopped is None:
            if self.store.due:
                self._begin_snapshot()
            elif self.store.nearly_due:
                self._snapshotting = self._loop.create_task(self._prepare())
        if self._pending and self.stopped is None:
            self._loop.call_soon(self._start)
            return
        for pending in self._pending:
            _refuse(pending.done, StoppedError(str(self.stopped)))
        self._pending, self._bytes = [], 0
        self._busy = False
        self._idle.set()

    def _fail(self, group: list[_Pending], reason: str) -> None:
        """The journal cannot be written: refuse everything from now on, and say so."""
        self._stop(reason)
        for pending in group:
            _refuse(pending.done, StoppedError(reason))
        self._on_fatal(reason)

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self.store.failed = reason
        self._on_event("stopped", reason)

    # ------------------------------------------------------------------ snapshots

    def _begin_snapshot(self) -> None:
        """Between two groups: the state is that of one sequence number, and only this moment stops the writer."""
        started = time.perf_counter()
        try:
            path = self.store.rotate()
            write = self._loop.run_in_executor(None, snapshot.begin(self.store.state, path))
        except JournalError as error:
            self._fail([], str(error))
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the journal holds the changes and the model goes on
            self._no_snapshot(error)
            return
        self.snapshot_pauses.append(time.perf_counter() - started)
        finishing = self._finish_snapshot(write, path, self.store.journal.path.name)
        self._snapshotting = self._loop.create_task(finishing)

    async def _finish_snapshot(self, write: asyncio.Future[Path], path: Path, first_kept: str) -> None:
        try:
            part = await write
            await self._loop.run_in_executor(None, self.store.finish, part, path, first_kept)
            self.snapshots += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the journal holds the changes and the model goes on
            self._no_snapshot(error)
        finally:
            self._snapshotting = None

    def _no_snapshot(self, error: Exception) -> None:
        reason = self._logged(error)
        self._on_event("snapshot", f"a snapshot could not be written ({reason}); the journal is kept and grows")

    def _logged(self, error: Exception) -> str:
        """What an event may say of an error; all of it goes to the log."""
        name = self.store.state.name
        print(f"varifold serve: no snapshot of {name!r}: {error!r}", file=sys.stderr, flush=True)
        return reason_of(error, self.store.folder)

    async def _prepare(self) -> None:
        """Make the next journal ready before it is needed."""
        try:
            await self._loop.run_in_executor(None, self.store.prepare)
        except JournalError as error:
            self._fail([], str(error))
        finally:
            self._snapshotting = None

    # ------------------------------------------------------------------ stopping

    async def drain(self) -> None:
        """Wait until everything submitted is answered and no snapshot is under way."""
        await self._idle.wait()
        if self._snapshotting is not None:
            await self._snapshotting

    async def stop(self, *, clean: bool = True) -> None:
        """Take no more changes, finish those taken, and leave a snapshot that makes the journal empty."""
        if self.stopped is None:
            await self._idle.wait()
            self.stopped = "the server is stopping; send the change again when it is back"
            await self.drain()
            if clean:
                await self._leave_snapshot()
        else:
            await self.drain()
        self.store.close()

    async def _leave_snapshot(self) -> None:
        try:
            await self._loop.run_in_executor(self._disk, self.store.snapshot_now)
        except Exception as error:  # noqa: BLE001 - whatever it is, the journal holds the changes and the stop goes on
            self._on_event("snapshot", f"no snapshot at the stop ({self._logged(error)}); the journal holds everything")


def _refuse(done: asyncio.Future[Any], error: VarifoldError) -> None:
    if not done.done():
        done.set_exception(error if isinstance(error, RequestError) else RefusedError(str(error)))
