"""Bytes by key in a temporary file: where `PerKey` keeps the learners that memory has no room for."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref

Key = str | int


class Shelf:
    """Bytes by key in one nameless temporary file; nothing is overwritten, and mostly dead files are copied.

    On an error everything that was kept stays. A copy or a pickle has the bytes, not the file.
    """

    _SLACK = 64 << 20

    def __init__(self) -> None:
        self._fd = -1
        self._where: dict[Key, tuple[int, int]] = {}
        self._end = 0
        self._live = 0

    def __getstate__(self) -> dict[Key, bytes]:
        return {key: self.read(key) for key in self._where}

    def __setstate__(self, held: dict[Key, bytes]) -> None:
        self.__init__()  # type: ignore[misc]
        for key, data in held.items():
            self.put(key, data)

    def put(self, key: Key, data: bytes) -> None:
        """Keep bytes under a key that has none."""
        if self._end > 2 * self._live + self._SLACK:
            self._compact()
        if self._fd < 0:
            fd, path = tempfile.mkstemp(prefix="varifold-")
            os.unlink(path)
            self._use(fd)
        if os.pwrite(self._fd, data, self._end) != len(data):
            raise OSError(errno.ENOSPC, "learners by key do not fit on the disk of the temporary folder")
        self._where[key] = (self._end, len(data))
        self._end += len(data)
        self._live += len(data)

    def replace(self, key: Key, data: bytes) -> None:
        """Keep other bytes under a key that has some; when the disk is full, the old ones stay."""
        length = self._where[key][1]
        self.put(key, data)
        self._live -= length

    def read(self, key: Key) -> bytes:
        """The bytes of a key."""
        start, size = self._where[key]
        return os.pread(self._fd, size, start)

    def forget(self, key: Key) -> None:
        """Keep nothing under this key any more."""
        self._live -= self._where.pop(key)[1]

    def open_files(self) -> list[int]:
        """The file descriptor in use, if any."""
        return [] if self._fd < 0 else [self._fd]

    def _use(self, fd: int) -> None:
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)

    def _compact(self) -> None:
        """Copy what is alive to a new file, then leave the old one."""
        new = Shelf()
        for key in self._where:
            new.put(key, self.read(key))
        self._close()
        self._fd, self._where, self._end, self._live = -1, new._where, new._end, new._live
        if new._fd >= 0:
            new._close.detach()
            self._use(new._fd)
