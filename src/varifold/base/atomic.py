"""Write files atomically and durably: a reader sees the old content or the new, never a part of it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["publish", "replace_file", "replacing", "sync_folder", "write_all", "write_synced"]

_MARK = ".varifold-"
_END = ".part"


def replace_file(target: Path, data: bytes) -> None:
    """Write data to a temporary file next to the target, fsync, rename it to the target, fsync the folder.

    A process that is killed meanwhile leaves its temporary file; the next call for the same target removes it.
    """
    with replacing(target) as (_, handle):
        write_synced(handle, data)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[tuple[Path, int]]:
    """Yield a temporary file next to the target, open for writing, which replaces the target at the end of the block.

    After an error the target is as it was, and the temporary file is gone.
    """
    remove_stale(target)
    temporary, handle = _new_part(target)
    try:
        try:
            yield temporary, handle
            if sys.platform != "win32":
                publish(temporary, target)  # while the lock is held, so that nobody removes the file as stale
        finally:
            os.close(handle)
        if sys.platform == "win32":
            publish(temporary, target)  # Windows renames no open file
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_synced(handle: int, data: bytes) -> None:
    """Write all of the data to an open file and flush it to disk."""
    write_all(handle, data)
    os.fsync(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of the data to an open file, repeating partial writes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def publish(part: Path, target: Path) -> None:
    """Rename a written file to its target and flush the folder."""
    os.replace(part, target)
    sync_folder(target.parent)


def remove_stale(target: Path) -> None:
    """Remove the temporary files that killed processes left next to the target, and no other file.

    A writer holds a lock on its file from the start to the rename. The system drops the lock when the process ends,
    so a file that can be locked has no writer any more. Windows has no such lock, and removes no open file.
    """
    own = re.compile(re.escape(target.name + _MARK) + "[0-9a-f]{8}" + re.escape(_END))
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if own.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unless_locked(Path(entry.path))


def _remove_unless_locked(part: Path) -> None:
    with contextlib.suppress(OSError):  # locked, not ours to remove, or gone already
        if sys.platform == "win32":
            part.unlink()
            return
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _new_part(target: Path) -> tuple[Path, int]:
    """Create a locked file next to the target, with the permissions that the umask leaves."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = target.with_name(f"{target.name}{_MARK}{secrets.token_hex(4)}{_END}")
        try:
            handle = os.open(part, flags, 0o666)
        except FileExistsError:
            continue
        if _lock(handle):
            return part, handle
        os.close(handle)  # another process removed it as stale before it was locked


def _lock(handle: int) -> bool:
    """Lock the file until it is closed; return whether it still has a name."""
    if sys.platform == "win32":
        return True
    with contextlib.suppress(OSError):  # a file system without locks: then nobody can lock, and remove, the file
        fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0


def sync_folder(folder: Path) -> None:
    """Flush renames and removals in a folder to disk; Windows cannot open folders."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
