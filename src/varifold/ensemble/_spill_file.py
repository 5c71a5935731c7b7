"""A temporary file of bytes by key, to which `PerKey` moves the learners that exceed its bound on memory."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref

Key = str | int


class SpillFile:
    """Bytes by key in one unnamed temporary file, which ends with the process.

    Nothing is overwritten: bytes are appended, and when most of the file is dead, the rest is copied to a new one. So
    an error leaves everything readable, and after a fork both processes can read what was there; the first write in
    the child starts a new file. A copy or a pickle holds the bytes, not the file.

    Parameters
    ----------
    folder
        Where the file is made; None for the system's temporary folder.

    """

    _SLACK = 64 << 20

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = folder
        self._fd = -1
        self._owner = os.getpid()
        self._where: dict[Key, tuple[int, int]] = {}
        self._end = 0
        self._live = 0

    def __getstate__(self) -> dict[Key, bytes]:
        return {key: self.read(key) for key in self._where}

    def __setstate__(self, contents: dict[Key, bytes]) -> None:
        self.__init__()  # type: ignore[misc]
        for key, data in contents.items():
            self.put(key, data)

    def put(self, key: Key, data: bytes) -> None:
        """Store bytes under a key that has none."""
        if self._end > 2 * self._live + self._SLACK or self._owner != os.getpid():
            self._compact()
        if self._fd < 0:
            fd, path = tempfile.mkstemp(prefix="varifold-", dir=self.folder)
            os.unlink(path)
            self._use(fd)
        if os.pwrite(self._fd, data, self._end) != len(data):
            raise OSError(errno.ENOSPC, "learners by key do not fit on the disk of the temporary folder")
        self._where[key] = (self._end, len(data))
        self._end += len(data)
        self._live += len(data)

    def replace(self, key: Key, data: bytes) -> None:
        """Replace the bytes of a key; if the disk is full, the old ones stay."""
        length = self._where[key][1]
        self.put(key, data)
        self._live -= length

    def read(self, key: Key) -> bytes:
        """Return the bytes of a key."""
        start, size = self._where[key]
        return os.pread(self._fd, size, start)

    def size_of(self, key: Key) -> int:
        """Return the length of what is stored under a key; 0 for nothing."""
        return self._where.get(key, (0, 0))[1]

    def forget(self, key: Key) -> None:
        """Drop a key and its bytes."""
        self._live -= self._where.pop(key)[1]

    def open_files(self) -> list[int]:
        """Return the file descriptor in use, if any."""
        return [] if self._fd < 0 else [self._fd]

    def _use(self, fd: int) -> None:
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)

    def _compact(self) -> None:
        """Copy the live bytes to a new file of this process, then close the old one."""
        new = SpillFile(self.folder)
        for key in self._where:
            new.put(key, self.read(key))
        if self._fd >= 0:
            self._close()
        self._fd, self._owner, self._where, self._end, self._live = -1, new._owner, new._where, new._end, new._live
        if new._fd >= 0:
            new._close.detach()
            self._use(new._fd)
