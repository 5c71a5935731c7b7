"""Snapshots: the content of a model's state, written without blocking the model.

A state of a few megabytes is copied, and encoded in a thread. A large one is encoded by a forked child process, which
inherits the current state and sends it through a pipe, so that the model waits for neither. Where the system cannot
fork, a large state is copied as well.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import BinaryIO

from varifold.base.atomic import write_all
from varifold.base.estimator import Estimator
from varifold.serve.core.database import PART
from varifold.serve.core.errors import StateError
from varifold.serve.core.state import ModelState

CAN_FORK = sys.platform == "linux"
_SMALL_BYTES, _SMALL_NAMES = 4_000_000, 5_000
"""Bytes of arrays, and features, up to which copying a state is faster than forking."""


def begin(state: ModelState) -> Iterator[bytes]:
    """Capture the current state; return its parts, which a thread can iterate over."""
    if CAN_FORK and not _is_small(state):
        return _from_child(*_fork(state))
    return _encoded(state.capture())


def _encoded(encode: Callable[[], list[bytes]]) -> Iterator[bytes]:
    """Yield the parts of a copied state; the first call of `next` encodes it, in the thread of the caller."""
    yield from split(encode())


def split(parts: list[bytes]) -> Iterator[bytes]:
    """Split the content of a snapshot into the parts that the database stores; the first one is not split."""
    head, *rest = parts
    yield head
    for data in rest:
        for at in range(0, len(data), PART):
            yield data[at : at + PART]


def _is_small(state: ModelState) -> bool:
    learner = state.learner
    if not isinstance(learner, Estimator):  # it is made of several
        return False
    return len(learner._engine.space) <= _SMALL_NAMES and sum(learner.state_bytes().values()) <= _SMALL_BYTES


def _fork(state: ModelState) -> tuple[int, BinaryIO]:
    """Start a child that sends the state; return its process id and the pipe to read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading, "rb")
    code = 1
    try:
        _close_all_but([writing, *getattr(state.learner, "open_files", list)()])
        for data in state.parts():
            write_all(writing, len(data).to_bytes(8, "little"))
            write_all(writing, data)
        code = 0
    except BaseException:  # noqa: BLE001 - the child must end here, whatever happens, and report why
        traceback.print_exc()
    finally:
        os._exit(code)


def _close_all_but(kept: list[int]) -> None:
    """Close inherited file descriptors: the listening socket must not outlive the server."""
    start = 3
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, 65_536)


def _from_child(child: int, pipe: BinaryIO) -> Iterator[bytes]:
    """Yield the parts that a child sends; raise an error if it failed."""
    try:
        with pipe:
            first = True
            while head := pipe.read(8):
                left = int.from_bytes(head, "little")
                size = left if first else PART
                while left > 0:
                    data = pipe.read(min(size, left))
                    if not data:
                        break
                    left -= len(data)
                    yield data
                first = False
    finally:
        _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise StateError(f"the process that packed the snapshot ended with {os.waitstatus_to_exitcode(status)}")
