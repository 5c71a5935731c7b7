"""Snapshots: the whole state of a model at one sequence number, in one file that is there whole or not at all.

A snapshot must not hold up the writer. A small state is copied at once and written in a thread. A large one is written
by a child process, which inherits the state as it stands at that moment (fork), so that the writer goes on at once;
where the system cannot fork it is copied as well.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from varifold.base.atomic import write_synced
from varifold.serve.core import learners
from varifold.serve.core.build import identity
from varifold.serve.core.errors import StateError
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.extra import orjson

MAGIC = b"varifold snapshot 1\n"
_SIZES = struct.Struct("<QQ")
CAN_FORK = sys.platform == "linux"
_SMALL_BYTES, _SMALL_ITEMS = 200_000, 2_000
"""Up to this size copying a state takes less time than forking."""


def pack(state: ModelState) -> bytes:
    """The content of a snapshot."""
    meta = orjson.dumps({**identity(), "state": state.dump()})
    model = learners.to_bytes(state.learner)
    body = MAGIC + _SIZES.pack(len(meta), len(model)) + meta + model
    return body + hashlib.sha256(body).digest()


def unpack(path: Path, limits: Limits) -> ModelState:
    """The state in a snapshot; a damaged one raises StateError."""
    data = path.read_bytes()
    at = len(MAGIC) + _SIZES.size
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise StateError(f"{path} is damaged: its content does not match its checksum; restore it from a copy")
    size, _ = _SIZES.unpack_from(data, len(MAGIC))
    meta = orjson.loads(data[at : at + size])
    return ModelState.restored(meta["state"], learners.from_bytes(data[at + size : -32]), limits)


def path_of(folder: Path, seq: int) -> Path:
    """Where the snapshot at a sequence number is."""
    return folder / f"snapshot-{seq:016d}.state"


def write_part(path: Path, data: bytes) -> Path:
    """Write and sync a file beside the target; `atomic.publish` gives it its name."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb", buffering=0) as file:
            write_synced(file.fileno(), data)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return part


def begin(state: ModelState, path: Path) -> Callable[[], Path]:
    """Fix the state as it is now; the function returned writes it, in a thread, and says to which file."""
    if CAN_FORK and not _is_small(state):
        return functools.partial(wait_for, fork_writer(state, path), path)
    return functools.partial(write_part, path, pack(state))


def _is_small(state: ModelState) -> bool:
    held = getattr(state.learner, "state_bytes", None)
    return held is not None and sum(held().values()) <= _SMALL_BYTES and state.items <= _SMALL_ITEMS


def fork_writer(state: ModelState, path: Path) -> int:
    """Start a child that writes the state as it is now to ``<path>.<pid of the child>.part``; returns its pid."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _close_all_but(getattr(state.learner, "open_files", list)())
        write_part(path, pack(state))
        code = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever happens, and say why
        traceback.print_exc()
    finally:
        os._exit(code)


def _close_all_but(kept: list[int]) -> None:
    """The listening socket must not outlive the server in a child that still writes."""
    start = 3
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, 65_536)


def wait_for(child: int, path: Path) -> Path:
    """Wait for the child; the file it wrote, or StateError."""
    _, status = os.waitpid(child, 0)
    part = path.with_name(f"{path.name}.{child}.part")
    if os.waitstatus_to_exitcode(status) != 0:
        part.unlink(missing_ok=True)
        raise StateError(f"the process that wrote the snapshot ended with {os.waitstatus_to_exitcode(status)}")
    return part
