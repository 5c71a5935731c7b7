"""One model on disk: a folder with snapshots and journals, recovered at the start and written while it serves."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from varifold.base.atomic import publish, sync_folder
from varifold.serve.core import snapshot
from varifold.serve.core.build import identity
from varifold.serve.core.errors import StateError
from varifold.serve.core.journal import ROWS, Journal, JournalReader, Record, pack_frame
from varifold.serve.core.state import Limits, ModelState

_PARSING = 6e-9
"""Seconds per byte that reading the journal again takes, beside applying it."""


@dataclass(frozen=True)
class Policy:
    """How durable, and when a snapshot is due."""

    fsync: str = "group"
    snapshot_every: int = 100_000
    replay_seconds: float = 2.0

    @property
    def syncs(self) -> bool:
        """Whether a change is on disk before it is acknowledged."""
        return self.fsync != "never"


@dataclass
class Recovery:
    """What was found at the start."""

    snapshot: int
    replayed: int
    cut: int
    seconds: float


class Store:
    """A model's state with its folder. The caller commits records, then applies them; both in one order."""

    def __init__(self, folder: Path, state: ModelState, policy: Policy, recovery: Recovery | None = None) -> None:
        self.folder = folder
        self.state = state
        self.policy = policy
        self.recovery = recovery
        self.journal = Journal(folder, _last_number(folder) + 1, fsync=policy.syncs)
        self._spare: Journal | None = None
        self.failed: str | None = None
        self.row_seconds = 1e-4
        """Running mean of the time to apply a row."""
        self._since = state.seq if recovery is None else recovery.snapshot
        self._replay = 0.0 if recovery is None else recovery.seconds
        self._next_seq = state.seq + 1
        self._frame_time = state.time

    # ------------------------------------------------------------------ making and finding

    @classmethod
    def create(cls, folder: Path, state: ModelState, policy: Policy) -> Store:
        """A new model: its folder appears with a first snapshot in it, or not at all."""
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        path = snapshot.path_of(part, state.seq)
        publish(snapshot.write_part(path, snapshot.pack(state)), path)
        part.rename(folder)
        sync_folder(folder.parent)
        return cls(folder, state, policy)

    @classmethod
    def open(cls, folder: Path, limits: Limits, policy: Policy) -> Store:
        """The model in a folder, as it was after the last change that reached the disk."""
        started = time.perf_counter()
        for left in folder.glob("*.part"):
            left.unlink()
        found = sorted(folder.glob("snapshot-*.state"))
        if not found:
            raise StateError(f"{folder} has no snapshot; restore it from a copy or remove the folder")
        state = snapshot.unpack(found[-1], limits)
        start = state.seq
        cut = cls._replay_journals(folder, state)
        recovery = Recovery(start, state.seq - start, cut, time.perf_counter() - started)
        return cls(folder, state, policy, recovery)

    @staticmethod
    def _replay_journals(folder: Path, state: ModelState) -> int:
        """Apply what follows the snapshot; returns the bytes cut from a torn tail."""
        cut = 0
        for path in sorted(folder.glob("journal-*.log")):
            reader = JournalReader(path)
            if reader.empty:
                path.unlink()
                continue
            if cut:
                raise StateError(f"{path} follows a journal that ends within a frame: a part of the chain is missing")
            for frame in reader.frames():
                rows = sum(record.rows for record in frame.records)
                if frame.first + rows - 1 <= state.seq:
                    continue
                _check_next(path, reader, frame.first, state.seq)
                state.tick(frame.time)
                _replay(path, frame.records, state)
            if reader.torn:
                cut = reader.torn
                reader.cut()
        return cut

    # ------------------------------------------------------------------ changes

    def frame(self, records: list[Record]) -> bytes:
        """The next frame of the journal; the records take the next sequence numbers."""
        now = max(int(time.time() * 1000), self.state.time)
        first = self._next_seq
        self._next_seq += sum(record.rows for record in records)
        self._frame_time = now
        return pack_frame(first, now, records)

    def apply(self, kind: int, body: Any, size: int) -> Any:
        """Apply a record that is on disk, and count what reading it again would cost."""
        started = time.perf_counter()
        try:
            return self.state.apply(kind, body)
        finally:
            seconds = time.perf_counter() - started
            self._replay += seconds + _PARSING * size
            rows = len(body) if kind == ROWS else 1
            self.row_seconds += 0.1 * (seconds / rows - self.row_seconds)

    def committed(self) -> None:
        """The frame is on disk: its time is the time of the changes that are applied next."""
        self.state.tick(self._frame_time)

    # ------------------------------------------------------------------ snapshots

    @property
    def due(self) -> bool:
        """Whether a snapshot should be made: many changes, or a long replay, since the last one."""
        return self.state.seq - self._since >= self.policy.snapshot_every or self._replay > self.policy.replay_seconds

    @property
    def nearly_due(self) -> bool:
        """Whether the next journal should be made ready, so that changing over to it costs nothing."""
        half = (
            self._replay > self.policy.replay_seconds / 2
            or 2 * (self.state.seq - self._since) > self.policy.snapshot_every
        )
        return half and self._spare is None

    def prepare(self) -> None:
        """Make the next journal ready; may run in another thread."""
        self._spare = Journal(self.folder, self.journal.number + 1, fsync=self.policy.syncs)

    def rotate(self) -> Path:
        """Go on in a new journal from the present state, whose snapshot goes to the path returned."""
        if self._spare is None:
            self.prepare()
        old, self.journal, self._spare = self.journal, self._spare, None  # type: ignore[assignment]
        old.close()
        self._since, self._replay = self.state.seq, 0.0
        return snapshot.path_of(self.folder, self.state.seq)

    def finish(self, part: Path, path: Path, first_kept: str) -> None:
        """The snapshot is written: give it its name, then remove what it replaces; journals go on at `first_kept`."""
        publish(part, path)
        for old in self.folder.glob("snapshot-*.state"):
            if old.name < path.name:
                old.unlink()
        for old in self.folder.glob("journal-*.log"):
            if old.name < first_kept:
                old.unlink()
        sync_folder(self.folder)

    def snapshot_now(self) -> None:
        """Write a snapshot and wait for it, as on a clean stop."""
        path = self.rotate()
        self.finish(snapshot.write_part(path, snapshot.pack(self.state)), path, self.journal.path.name)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()
        if self._spare is not None:
            self._spare.close()


def _last_number(folder: Path) -> int:
    return max((int(path.stem[8:]) for path in folder.glob("journal-*.log")), default=0)


def _replay(path: Path, records: list[Record], state: ModelState) -> None:
    for record in records:
        try:
            state.replay(record)
        except Exception as error:
            raise StateError(f"{path} cannot be applied at change {state.seq:,}: {error!r}") from error


def _check_next(path: Path, reader: JournalReader, first: int, seq: int) -> None:
    """Refuse a gap in the chain of journals, and changes that another build has made."""
    if first != seq + 1:
        raise StateError(
            f"{path} goes on at change {first:,}, but the state before it ends at {seq:,}: a file is missing"
        )
    mine = identity()
    theirs = {key: reader.header.get(key) for key in mine}
    if theirs != mine:
        raise StateError(
            f"{path} holds changes made by varifold {theirs['version']} (build {theirs['build']}); this is "
            f"{mine['version']} (build {mine['build']}), which may not repeat them to the bit. Start the former and "
            "stop it cleanly (SIGTERM): it then leaves a snapshot that any later version reads"
        )
