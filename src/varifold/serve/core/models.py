"""Named models in one folder, held by one process."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from varifold.base.atomic import sync_folder
from varifold.base.nearest import nearest
from varifold.serve.core import learners
from varifold.serve.core.errors import (
    ConflictError,
    JournalError,
    NotFoundError,
    RefusedError,
    StateError,
    StoppedError,
    reason_of,
)
from varifold.serve.core.events import Events
from varifold.serve.core.group_commit import Writer
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_THREADS = 8
MOST_MODELS = 1_000


def check_name(name: str) -> None:
    """Refuse a name that could not be that of a folder and a part of a path."""
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"the name {name[:80]!r} is not 1 to 64 letters, digits, - and _, starting with one of the first two"
        )


def lock_folder(folder: Path) -> int:
    """Hold a folder of models for this process; the lock ends with the file descriptor or the process."""
    (folder / "models").mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise StateError(f"{folder} is in use by another process; one process per folder") from error
    return fd


class Models:
    """Every model of a server; `open` recovers them, `stop` leaves them clean.

    A model that cannot be recovered is refused with the reason, in `unrecovered`; the others are served.
    If a journal cannot be written, ``on_fatal`` is called with the reason; whoever runs the server ends it then.
    """

    def __init__(self, folder: Path, policy: Policy, limits: Limits, on_fatal: Callable[[str], None]) -> None:
        self.folder = folder.absolute()
        self.policy = policy
        self.limits = limits
        self.stopped: str | None = None
        self._on_fatal = on_fatal
        self._disk = ThreadPoolExecutor(_THREADS, thread_name_prefix="journal")
        self.unrecovered: dict[str, str] = {}
        self.damaged: dict[str, Exception] = {}
        """The whole errors of those models, for the log of the server."""
        self._writers: dict[str, Writer] = {}
        self._leaving: set[str] = set()
        self._lock = lock_folder(self.folder)
        self.events = Events(self.folder / "events")

    def open(self) -> None:
        """Recover every model of the folder; call it on the running event loop."""
        for place in sorted((self.folder / "models").iterdir()):
            if place.suffix in (".part", ".deleted"):
                shutil.rmtree(place)
            elif place.is_dir():
                self._recover(place)

    def _recover(self, place: Path) -> None:
        try:
            self._add(Store.open(place, self.limits, self.policy))
        except JournalError:  # nothing can be written here: no model would do better
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one model, the others are served
            self.damaged[place.name] = error
            reason = (
                f"the model {place.name!r} could not be recovered: {reason_of(error, self.folder)}. Mend it and start "
                "again, or delete it"
            )
            self.unrecovered[place.name] = reason
            self.events.add(place.name, "stopped", reason)

    def _add(self, store: Store) -> Writer:
        name = store.state.name

        def on_event(kind: str, text: str) -> None:
            self.events.add(name, kind, text)

        writer = Writer(store, self._disk, self._fatal, on_event)
        self._writers[name] = writer
        return writer

    def _fatal(self, reason: str) -> None:
        """One journal cannot be written: no model takes changes any more."""
        if self.stopped is None:
            self.stopped = reason
            for writer in self._writers.values():
                writer.stopped = writer.stopped or reason
            self._on_fatal(reason)

    # ------------------------------------------------------------------ names

    def __iter__(self) -> Iterator[Writer]:
        return iter(list(self._writers.values()))

    def __len__(self) -> int:
        return len(self._writers)

    def __contains__(self, name: object) -> bool:
        return name in self._writers or name in self.unrecovered

    def __getitem__(self, name: str) -> Writer:
        found = self._writers.get(name)
        if name in self.unrecovered:
            raise StoppedError(self.unrecovered[name])
        if found is None:
            raise NotFoundError(f"there is no model {name!r}{nearest(name, sorted(self._writers))}")
        return found

    def create(self, name: str, method: str, params: Mapping[str, Any], key: str | None = None) -> Writer:
        """A new model, on disk when this returns."""
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        check_name(name)
        if name in self:
            raise ConflictError(f"the model {name!r} exists already; delete it first, or restore a file into it")
        if len(self._writers) >= MOST_MODELS:
            raise RefusedError(f"there are {MOST_MODELS:,} models already; models by key need only one")
        learner = learners.make(method, params, key)
        return self._add(
            Store.create(self.folder / "models" / name, ModelState(name, learner, self.limits), self.policy)
        )

    async def delete(self, name: str) -> None:
        """Remove a model for good."""
        writer = None if name in self.unrecovered else self[name]
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        if name in self._leaving:
            raise NotFoundError(f"the model {name!r} is being deleted")
        self._leaving.add(name)
        if writer is not None:
            await writer.stop(clean=False)
        place = self.folder / "models" / name
        gone = place.with_suffix(".deleted")
        shutil.rmtree(gone, ignore_errors=True)
        place.rename(gone)
        self._writers.pop(name, None)
        self.unrecovered.pop(name, None)
        self._leaving.discard(name)
        sync_folder(place.parent)
        shutil.rmtree(gone)

    async def stop(self) -> None:
        """Finish what was taken, and leave snapshots; an error in one model does not keep the others from it."""
        ended = await asyncio.gather(*(writer.stop() for writer in self), return_exceptions=True)
        self._disk.shutdown()
        self.events.close()
        os.close(self._lock)
        for error in ended:
            if error is not None:
                raise error
