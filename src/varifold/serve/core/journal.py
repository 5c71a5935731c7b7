"""The journal: every change, in order, on disk before it is acknowledged.

A journal is a chain of files. Each starts with a header (version and build of the library) and goes on with frames.
A frame holds the changes of one group commit:

    marker, length of the content, crc32 of the content, crc32 of these three | content

and its content is the first sequence number, the time in milliseconds, and records (length, kind, rows, payload).
The next frame is written only after the one before is on disk. So only the last frame can be torn, by a power loss
within its write: the file ends within it, or sectors of it were never written and read as zeros. Nobody was promised
such a frame, and it is cut. Any other damage is a fault of the disk and is reported, never skipped.
"""

from __future__ import annotations

import itertools
import os
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from varifold.base.atomic import publish, write_all, write_synced
from varifold.serve.core.build import identity
from varifold.serve.core.errors import JournalError, StateError
from varifold.serve.extra import orjson

MAGIC = b"varifold journal 1\n"
_HEADER = struct.Struct("<II")
_FRAME = struct.Struct("<4sIII")
_CONTENT = struct.Struct("<QQ")
_RECORD = struct.Struct("<IBI")
_MARKER = b"VfJ\x01"
_SECTOR = 512
_FEWEST_ZEROS = 16  # longer than any run of zeros in the numbers of a frame

LEARN, KEEP, LABEL, ROWS, RESTORE = 1, 2, 3, 4, 5
"""Kinds of record: one instance learned, one predicted and kept, a label that came, NDJSON rows, a model file."""


class Record(NamedTuple):
    """One change; it takes as many sequence numbers as it has rows."""

    kind: int
    payload: bytes
    rows: int = 1


@dataclass(frozen=True)
class Frame:
    """The changes of one group commit."""

    first: int
    time: int
    records: list[Record]


def pack_frame(first: int, milliseconds: int, records: list[Record]) -> bytes:
    """A frame as it stands in the file."""
    parts = [_CONTENT.pack(first, milliseconds)]
    for record in records:
        parts.append(_RECORD.pack(len(record.payload), record.kind, record.rows))
        parts.append(record.payload)
    content = b"".join(parts)
    head = _FRAME.pack(_MARKER, len(content), zlib.crc32(content), 0)[:12]
    return head + zlib.crc32(head).to_bytes(4, "little") + content


def _unpack(content: bytes) -> Frame:
    first, milliseconds = _CONTENT.unpack_from(content)
    records, at = [], _CONTENT.size
    while at < len(content):
        length, kind, rows = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        records.append(Record(kind, content[at : at + length], rows))
        at += length
    return Frame(first, milliseconds, records)


class JournalReader:
    """A journal file as it is found at the start; `end` is where its sound frames end, known after reading them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = path.read_bytes()
        self.header, self.end = self._read_header()
        self.torn = 0

    def _read_header(self) -> tuple[dict[str, Any], int]:
        at = len(MAGIC) + _HEADER.size
        if self._data[: len(MAGIC)] != MAGIC or len(self._data) < at:
            raise StateError(f"{self.path} is no journal of varifold, or its first bytes are damaged")
        length, crc = _HEADER.unpack_from(self._data, len(MAGIC))
        text = self._data[at : at + length]
        if len(text) != length or zlib.crc32(text) != crc:
            raise StateError(f"{self.path} is damaged at offset {at}: its header does not match its checksum")
        header: dict[str, Any] = orjson.loads(text)
        return header, at + length

    @property
    def empty(self) -> bool:
        """Whether nothing follows the header."""
        return len(self._data) == self.end

    def frames(self) -> Iterator[Frame]:
        """The sound frames; a torn tail sets `torn`, any other damage raises StateError with file and offset."""
        data, at = self._data, self.end
        while at < len(data):
            rest = len(data) - at
            if rest < _FRAME.size:
                break
            marker, length, crc, head_crc = _FRAME.unpack_from(data, at)
            if marker != _MARKER or zlib.crc32(data[at : at + 12]) != head_crc:
                if self._is_torn(at):
                    break
                raise self._damaged(at, "the head of a frame")
            if rest < _FRAME.size + length:
                break
            content = data[at + _FRAME.size : at + _FRAME.size + length]
            if zlib.crc32(content) != crc:
                if self._is_torn(at):
                    break
                raise self._damaged(at, f"a frame of {length:,} bytes")
            at += _FRAME.size + length
            self.end = at
            yield _unpack(content)
        self.torn = len(data) - at

    def _is_torn(self, at: int) -> bool:
        """Whether the frame at an offset is the last one and was written in part.

        Sectors of a lengthened file that were never written read as zeros. Changes are JSON, which has no zeros; only a
        model file may, so that damage to one is reported even where it might be a torn write.
        """
        data = self._data
        following = data.find(_MARKER, at + 1)
        while following >= 0:
            head, crc = data[following : following + 12], data[following + 12 : following + 16]
            if zlib.crc32(head).to_bytes(4, "little") == crc:
                return False
            following = data.find(_MARKER, following + 1)
        kind = at + _FRAME.size + _CONTENT.size + 4
        if data[kind : kind + 1] == bytes([RESTORE]):
            return False
        cuts = [at, *range(at // _SECTOR * _SECTOR + _SECTOR, len(data), _SECTOR), len(data)]
        parts = (data[a:b] for a, b in itertools.pairwise(cuts))
        return any(len(part) >= _FEWEST_ZEROS and not any(part) for part in parts) or not any(data[at:])

    def _damaged(self, at: int, what: str) -> StateError:
        return StateError(
            f"{self.path} is damaged at offset {at}: {what} does not match its checksum. What was acknowledged after "
            "it cannot be trusted: restore the folder from a copy, or cut the file at that offset "
            f"(truncate -s {at}) to go on without those changes"
        )

    def cut(self) -> None:
        """Remove a torn tail from the file."""
        with open(self.path, "r+b") as file:
            file.truncate(self.end)
            os.fsync(file.fileno())


class Journal:
    """The file that changes are appended to. One thread at a time; `write` returns once the frame is durable."""

    def __init__(self, folder: Path, number: int, *, fsync: bool = True) -> None:
        self.path = folder / f"journal-{number:08d}.log"
        self.number = number
        self.fsync = fsync
        self.size = 0
        self._fd = self._create()

    def _create(self) -> int:
        text = orjson.dumps({**identity(), "number": self.number, "created": int(time.time() * 1000)})
        head = MAGIC + _HEADER.pack(len(text), zlib.crc32(text)) + text
        part = self.path.with_suffix(".part")
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                write_synced(fd, head)
                publish(part, self.path)
            except OSError:
                os.close(fd)
                raise
        except OSError as error:
            raise _unwritable(error) from error
        self.size = len(head)
        return fd

    def write(self, frame: bytes) -> None:
        """Append a frame; with fsync it is on disk when this returns."""
        try:
            write_all(self._fd, frame)
            if self.fsync:
                (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._fd)
        except OSError as error:
            raise _unwritable(error) from error
        self.size += len(frame)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _unwritable(error: OSError) -> JournalError:
    return JournalError(
        f"the journal cannot be written ({error.strerror or error}); the server takes no more changes and stops. "
        "Nothing that was acknowledged is lost: free space or mend the disk, then start it again"
    )
