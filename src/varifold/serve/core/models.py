"""Named models of one folder, which is locked by one process."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from varifold.base.json_text import write_json
from varifold.base.nearest import nearest
from varifold.base.plural import plural
from varifold.errors import VarifoldError
from varifold.serve.core import learners, log, snapshot
from varifold.serve.core.budget import ServerBudget
from varifold.serve.core.database import Database, ModelRow, make_folder
from varifold.serve.core.errors import (
    ConflictError,
    DiskError,
    NotFoundError,
    RejectedError,
    RequestError,
    StateError,
    StoppedError,
    reason_of,
)
from varifold.serve.core.events import Events
from varifold.serve.core.group_commit import Acknowledgement, Committer
from varifold.serve.core.input import InputRules
from varifold.serve.core.quoted_numbers import QuotedNumbers
from varifold.serve.core.state import Limits, ModelState, Partition, Recovery
from varifold.streams.readers.notation import POINT, Notation

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PARSING = 6e-9
"""Seconds per byte to parse a change at replay, in addition to learning it."""
_REPLAY_TIMES = 3.0
_SLOW = 1e-3
"""Seconds per row from which a model shares the event loop turn by turn."""
MOST_MODELS = 1_000
_MADE_OF = ("method", "params", "key", "max_keys", "input", "ask")
"""Fields of the description of a model."""


@dataclass(frozen=True)
class Policy:
    """How durable changes are, and when a snapshot is due."""

    fsync: str = "group"
    snapshot_every: int = 100_000
    replay_seconds: float = 2.0

    @property
    def syncs(self) -> bool:
        """Whether a change is on disk before it is acknowledged."""
        return self.fsync != "never"


@dataclass(frozen=True)
class ModelDescription:
    """A model to make."""

    method: str = "auto"
    params: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    rules: InputRules = field(default_factory=InputRules)
    max_keys: int | None = None
    """Most learners by key; None keeps all."""

    @classmethod
    def from_json(cls, body: Any) -> ModelDescription:
        """Check the description of a model in a request or a configuration."""
        if not isinstance(body, dict):
            raise RejectedError(f"a model is described by an object or a table, not by {str(body)[:60]!r}")
        method, params, key = body.get("method", "auto"), body.get("params", {}), body.get("key")
        for name in body:
            if name not in _MADE_OF:
                raise RejectedError(
                    f"a model has no field {name!r}{nearest(name, _MADE_OF)}; there are {', '.join(_MADE_OF)}"
                )
        rules = InputRules.of_model(body)
        if not isinstance(method, str) or not isinstance(params, dict) or not isinstance(key, str | None):
            raise RejectedError(
                'a model is made of {"method": "auto", "params": {}, "key": null, "max_keys": null, "input": {}, '
                '"ask": null}; all may be left out'
            )
        if key is not None and rules.key not in (None, key):
            raise RejectedError(f"key is {key!r}, and the key of input {rules.key!r}; give one of them")
        key, max_keys = key or rules.key, body.get("max_keys")
        if max_keys is not None and (key is None or type(max_keys) is not int or max_keys < 1):
            raise RejectedError(f"max_keys is {str(max_keys)[:60]!r}; it is a number from 1, of a model with a key")
        return cls(method, params, key, rules, max_keys)


def check_name(name: str) -> None:
    """Reject a name that is not safe as a part of a path."""
    if not _NAME.fullmatch(name):
        raise RejectedError(
            f"the name {name[:80]!r} is not 1 to 64 letters, digits, - and _, starting with one of the first two"
        )


def lock_folder(folder: Path) -> int:
    """Lock a folder of models for this process; the lock ends with the file descriptor or the process."""
    make_folder(folder)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise StateError(f"{folder} is in use by another process; one process per folder") from error
    return fd


class Model:
    """A served model: its state, and how its changes reach the disk."""

    def __init__(
        self,
        state: ModelState,
        committer: Committer,
        policy: Policy,
        events: Events,
        recovery: Recovery | None = None,
    ) -> None:
        self.state = state
        state.rules.numbers = QuotedNumbers(self._report_numbers)
        self.recovery = recovery
        self.snapshots = 0
        self.snapshot_failed: str | None = None
        self.snapshot_pauses: deque[float] = deque(maxlen=1_000)
        """Seconds for which the latest snapshots blocked the model."""
        self.row_seconds = 1e-4
        """Running mean of the seconds to apply a row."""
        self._committer = committer
        self._policy = policy
        self._events = events
        self._stopped: str | None = None
        self._turns = asyncio.Lock()
        self._packing = asyncio.Lock()
        self._snapshot_seconds = 0.0
        self._since = state.snapshot
        self._replay = 0.0 if recovery is None else recovery.seconds
        self._snapshotting: asyncio.Task[None] | None = None
        if recovery is not None and recovery.set_aside:
            self._replay = float("inf")  # make a snapshot soon: it supersedes the changes that were set aside

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.state.name

    @property
    def stopped(self) -> str | None:
        """Reason why the model accepts no changes; None if it accepts them."""
        return self._stopped or self._committer.stopped

    def _report_numbers(self, field: str, text: str, notation: Notation) -> None:
        """Log that the numbers of a field are strings, with the request by which they are read as numbers."""
        if field == getattr(self.state.learner, "key", None):
            return
        types: dict[str, Any] = {"types": {field: "numeric"}}
        if notation != POINT:
            types["notations"] = {field: notation.parts}
        others = ", with the other rules, which it replaces," if self.state.rules.reading else ""
        log.warning(
            f"the field {field!r} holds numbers as strings, such as {text!r}, and each is a category: PUT "
            f"/models/{self.name} {write_json({'input': types}).decode()}{others} reads the numbers; the type "
            '"category" suppresses this message',
            self.name,
        )

    # ------------------------------------------------------------------ changes

    async def turn(self) -> None:
        """Wait for the turn of a change or a prediction of a slow model, so that other models are served in between.

        A model is slow if, for example, it has more learners by key than memory holds. It gets one turn in each round
        of the event loop.
        """
        if self.takes_turns:
            async with self._turns:
                await asyncio.sleep(0)

    @property
    def takes_turns(self) -> bool:
        """Whether the model is slow."""
        return self.row_seconds > _SLOW

    def submit(
        self, body: dict[str, Any], text: bytes, read: tuple[Partition, int] | None = None,
        done: Acknowledgement | None = None,
    ) -> Any:  # fmt: skip
        """Apply a change; the future gets its response once it is on disk. An error of the learner is raised here.

        `read` is the partition of Kafka that the change was read from and the next offset of it, stored with it. `done`
        takes the place of the future.
        """
        if read is None:
            return self._apply(1, len(text), self.state.apply, body, text, done=done)
        return self._apply(1, len(text), self._change, body, text, read)

    def _change(self, body: dict[str, Any], text: bytes, read: tuple[Partition, int]) -> dict[str, Any]:
        response = self.state.apply(body, text)
        self.state.advance(read[0], learned=read[1])
        return response

    def advance(self, partition: Partition, *, learned: int | None = None, sent: int | None = None) -> None:
        """Store how far a partition of Kafka is learned or sent."""
        self._check()
        self.state.advance(partition, learned=learned, sent=sent)
        self._committer.acknowledge(self.state, None)

    def submit_rows(self, rows: list[tuple[dict[str, Any], bytes]], size: int) -> Any:
        """Apply rows; the future gets a response or an error for each once they are on disk."""
        return self._apply(len(rows), size, self.state.apply_rows, rows)

    def restore(self, data: bytes) -> Any:
        """Replace the learner with the one in a model file."""
        return self._apply(1, len(data), self.state.restore, data)

    def change_rules(self, options: Any) -> Any:
        """Replace the input rules."""
        return self._apply(1, 0, self.state.change_rules, options)

    def _apply(
        self, rows: int, size: int, function: Callable[..., Any], *arguments: Any, done: Acknowledgement | None = None
    ) -> Any:
        self._check()
        self.state.tick(int(time.time() * 1000))
        started = time.perf_counter()
        try:
            response = function(*arguments)
        except RequestError:
            raise
        except VarifoldError as error:
            raise RejectedError(str(error)) from error
        except OSError as error:  # learners by key could not be moved to disk
            self._committer.fail(str(DiskError.of(error)))
            raise StoppedError(str(self.stopped)) from error
        except Exception as error:
            log.failure("the model failed at a change", self.name, error)
            self.stop_changes(
                f"the model failed after change {self.state.seq:,} ({type(error).__name__}); it accepts no more changes"
            )
            raise StoppedError(str(self._stopped)) from error
        seconds = time.perf_counter() - started
        self._replay += seconds + _PARSING * size
        self.row_seconds += 0.1 * (seconds / max(1, rows) - self.row_seconds)
        done = self._committer.acknowledge(self.state, response, size, done)
        if self._snapshotting is None and self._due():
            self._snapshotting = asyncio.get_running_loop().create_task(self._snapshot())
        return done

    def _check(self) -> None:
        """Reject a change if the model is stopped or too many changes wait for the disk."""
        if self._stopped is not None:
            raise StoppedError(self._stopped)
        self._committer.check()

    def stop_changes(self, reason: str) -> None:
        """Accept no more changes."""
        self._stopped = reason
        self._events.add(self.name, "stopped", reason)

    # ------------------------------------------------------------------ snapshots

    def _due(self) -> bool:
        """Return whether a snapshot is due: many changes, or a long replay, since the last one.

        A replay may take some times as long as a snapshot does, so that a large model is not packed all the time.
        """
        longest = max(self._policy.replay_seconds, _REPLAY_TIMES * self._snapshot_seconds)
        return self.state.seq - self._since >= self._policy.snapshot_every or self._replay > longest

    async def _snapshot(self) -> None:
        """Store the current state; only packing it, or forking, blocks the model."""
        started = time.perf_counter()
        try:
            self._since, self._replay = self.state.seq, 0.0
            seq, parts = self.state.seq, snapshot.begin(self.state)
            self.snapshot_pauses.append(time.perf_counter() - started)
            await self._committer.drain_group()
            await self._store(seq, parts)
        except DiskError as error:
            self._committer.fail(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the changes are on disk and the model keeps working
            log.failure(f"no snapshot of {self.name!r}: {error!r}", self.name)
            reason = reason_of(error, self._committer.database.folder)
            self.snapshot_failed = f"a snapshot could not be written ({reason}); the changes are kept and grow"
            self._events.add(self.name, "snapshot", self.snapshot_failed)
        else:
            self.snapshots += 1
            self.snapshot_failed = None
            self._snapshot_seconds = time.perf_counter() - started
        finally:
            self._snapshotting = None

    async def _store(self, seq: int, parts: Iterator[bytes]) -> None:
        """Write the parts of a snapshot between the transactions of other changes, then remove what it replaces."""
        database, loop, number = self._committer.database, asyncio.get_running_loop(), 0
        while (data := await loop.run_in_executor(self._committer.packing, next, parts, None)) is not None:
            await self._committer.run(database.add_part, self.state.id, seq, number, data)
            number += 1
        await self._committer.run(database.finish_snapshot, self.state.id, seq)
        self.state.snapshot = seq
        while await self._committer.run(database.prune):
            pass

    async def packed(self) -> tuple[int, bytes]:
        """Return the model file and its sequence number, once that is on disk; packing does not block the model."""
        async with self._packing:
            seq, parts = self.state.seq, snapshot.begin(self.state)
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(self._committer.packing, _learner_in, parts)
            await self._committer.drain_group()
            return seq, data

    async def digest(self) -> tuple[int, str]:
        """Return the SHA-256 of the model file and its sequence number."""
        seq, data = await self.packed()
        return seq, hashlib.sha256(data).hexdigest()

    # ------------------------------------------------------------------ stopping

    async def drain(self) -> None:
        """Wait until everything applied is on disk and no snapshot is in progress."""
        await self._committer.drain()
        if self._snapshotting is not None:
            await self._snapshotting

    async def stop(self, *, clean: bool = True) -> None:
        """Stop accepting changes, finish the accepted ones, and write a snapshot, so that nothing is replayed."""
        failed = self.stopped is not None
        if not failed:
            self._stopped = (
                "the server is stopping; send the change again when it is back" if clean else "the model is deleted"
            )
        await self.drain()
        if clean and not failed and self._since < self.state.seq:
            await self._snapshot()


def _learner_in(parts: Iterator[bytes]) -> bytes:
    """Return the learner of a snapshot, without the JSON that comes first."""
    next(parts)
    return b"".join(parts)


class Models:
    """All models of a server; `open` recovers them, `stop` writes their snapshots.

    A model that cannot be recovered is listed in `unrecovered` with the reason and rejects requests; the others are
    served. If the disk fails, ``on_fatal`` is called with the reason; the caller must then stop the server.
    """

    def __init__(
        self, folder: Path, policy: Policy, limits: Limits, on_fatal: Callable[[str], None],
        budget: ServerBudget | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder.absolute()
        self.policy = policy
        self.limits = limits
        self.budget = budget or ServerBudget()
        self._on_fatal = on_fatal
        self.unrecovered: dict[str, str] = {}
        self.damaged: dict[str, Exception] = {}
        """Errors of the models in `unrecovered`, for the server's log."""
        self.lag: dict[tuple[str, Partition], int] = {}
        """Messages of Kafka that are not learned yet, by model and partition."""
        self._models: dict[str, Model] = {}
        self._ids: dict[str, int] = {}
        self._making: set[str] = set()
        self._lock = lock_folder(self.folder)
        try:
            self.database = Database.open(self.folder, sync=policy.syncs)
        except BaseException:
            os.close(self._lock)
            raise
        self.committer = Committer(self.database, self._fatal, one_by_one=policy.fsync == "always")
        self.events = Events(self.database.events(), clean=self.database.clean, store=self.committer.add_event)

    @property
    def stopped(self) -> str | None:
        """Reason why no model accepts changes; None if they do."""
        return self.committer.stopped

    def open(self) -> None:
        """Recover every model of the folder; must be called on the running event loop."""
        while self.database.prune(unfinished=True):
            pass  # each call removes some rows in one transaction
        for row in self.database.models():
            self._ids[row.name] = row.id
            self._recover(row)

    def _recover(self, row: ModelRow) -> None:
        started = time.perf_counter()
        try:
            state, recovery = ModelState.load(self.database, row, self.limits, self.budget)
            recovery.seconds = time.perf_counter() - started
            if recovery.set_aside:
                self.database.set_aside(row.id, recovery.set_aside)
        except DiskError:  # the disk cannot be written: every other model would fail as well
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one model, the others are served
            self.damaged[row.name] = error
            reason = (
                f"the model {row.name!r} could not be recovered: {reason_of(error, self.folder)}. Restore a backup, "
                "or delete it"
            )
            self.unrecovered[row.name] = reason
            self.events.add(row.name, "stopped", reason)
            return
        self._add(state, recovery)
        for one in recovery.set_aside[:1]:
            n = len(recovery.set_aside)
            text = f"{plural(n, 'change')} could not be learned again and {'are' if n > 1 else 'is'} set aside"
            self.events.add(row.name, "set-aside", f"{text}; the first is change {one.seq:,}: {one.reason}")

    def _add(self, state: ModelState, recovery: Recovery | None = None) -> Model:
        model = Model(state, self.committer, self.policy, self.events, recovery)
        self._models[state.name] = model
        self._ids[state.name] = state.id
        return model

    def _fatal(self, reason: str) -> None:
        """Report that the disk failed: no model accepts changes anymore."""
        for name in self._models:
            self.events.add(name, "stopped", reason)
        self._on_fatal(reason)

    # ------------------------------------------------------------------ names

    def __iter__(self) -> Iterator[Model]:
        return iter(list(self._models.values()))

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, name: object) -> bool:
        return name in self._models or name in self.unrecovered

    def get(self, name: str) -> Model | None:
        """Return a model that is served; None for others."""
        return self._models.get(name)

    def __getitem__(self, name: str) -> Model:
        model = self._models.get(name)
        if name in self.unrecovered:
            raise StoppedError(self.unrecovered[name])
        if model is None:
            raise NotFoundError(f"there is no model {name!r}{nearest(name, sorted(self._models))}")
        return model

    async def create(
        self, name: str, method: str, params: Mapping[str, Any], key: str | None = None,
        rules: InputRules | None = None, max_keys: int | None = None,
    ) -> Model:  # fmt: skip
        """Make a new model; it is on disk when this returns."""
        self._check_new(name)
        if rules is not None:
            rules.check_key(key)
        return await self._stored(name, self.budget.make(learners.make, method, params, key, max_keys), rules)

    async def restore(self, name: str, data: bytes) -> Model:
        """Make a new model of a model file, with the input rules that the file has; it is on disk when this returns."""
        self._check_new(name)
        learner = self.budget.make(learners.from_bytes, data)
        rules = InputRules().for_file(learner.reading, getattr(learner, "key", None))
        return await self._stored(name, learner, rules)

    def _check_new(self, name: str) -> None:
        """Reject a name that is no name of a new model, or a model too many."""
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        check_name(name)
        if name in self or name in self._making:
            raise ConflictError(
                f"the model {name!r} exists already; delete it first, restore a file into it, or send "
                '{"input": {...}} alone to change its input rules'
            )
        if len(self._models) >= MOST_MODELS:
            raise RejectedError(f"there are {MOST_MODELS:,} models already; models by key need only one")

    async def _stored(self, name: str, learner: Any, rules: InputRules | None) -> Model:
        """Make a new model with a learner; it is on disk when this returns."""
        state = ModelState(name, learner, self.limits, budget=self.budget, rules=rules)
        parts = list(snapshot.split(state.parts()))
        self._making.add(name)
        try:
            state.id = (await self._written(self.database.add_model, name, state.incarnation, parts)).id
        finally:
            self._making.discard(name)
        return self._add(state)

    async def ensure(self, name: str, spec: ModelDescription) -> None:
        """Make a model of the configuration unless it exists; log which of its options are then not used."""
        if name not in self:
            await self.create(name, spec.method, spec.params, spec.key, spec.rules, spec.max_keys)
            log.info(f"made, of the method {spec.method!r}", name)
            return
        model = self.get(name)
        if model is None:
            return
        rules = model.state.rules
        if spec.rules.ask not in (None, rules.ask):
            ask = write_json(rules.ask).decode()
            log.warning(
                f"exists, with the ask {ask}; that of the configuration is not used, and cannot be changed: leave it "
                "out, or give another name for the model",
                name,
            )
        if spec.rules.reading not in ({}, rules.reading):
            reading = write_json(rules.reading).decode()
            log.warning(
                f"exists, with the input rules {reading}; those of the configuration are not used. To change them: "
                f'PUT /models/{name} {{"input": {{...}}}}',
                name,
            )

    async def delete(self, name: str) -> None:
        """Remove a model permanently."""
        model = None if name in self.unrecovered else self[name]
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        if name in self._making:
            raise NotFoundError(f"the model {name!r} is being deleted")
        self._making.add(name)
        self._models.pop(name, None)  # from now on it is not found; finishing its changes may take a while
        try:
            if model is not None:
                await model.stop(clean=False)
            await self._written(self.database.remove_model, self._ids.pop(name))
        finally:
            self._making.discard(name)
            if model is not None:
                model.state.budget.close()
            self.unrecovered.pop(name, None)
            self.events.forget(name)
        while await self._written(self.database.prune):
            pass

    async def _written(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that writes to the database; if the disk fails, stop accepting changes."""
        try:
            return await self.committer.run(function, *arguments)
        except DiskError as error:
            self.committer.fail(str(error))
            raise StoppedError(str(error)) from error

    async def stop(self) -> None:
        """Finish the accepted changes and write snapshots; an error in one model does not affect the others."""
        errors = await asyncio.gather(*(model.stop() for model in self), return_exceptions=True)
        await self.committer.drain()
        failed = self.stopped is not None
        self.committer.disk.shutdown()
        self.committer.packing.shutdown()
        try:
            self.database.close(clean=not failed)
        finally:
            os.close(self._lock)
        _raise_first(errors)


def _raise_first(errors: Iterable[BaseException | None]) -> None:
    for error in errors:
        if error is not None:
            raise error
