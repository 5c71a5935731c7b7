"""Open files, compressed files and standard input, and detect their format."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from varifold.errors import DataError, VarifoldError, missing_extra

__all__ = ["FORMATS", "OWN_LABELS", "Source", "detect_format", "first_bytes", "open_source"]

FORMATS = ("csv", "jsonl", "svmlight", "arff", "parquet", "ipc")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".feat": "svmlight",
    ".arff": "arff",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
OWN_LABELS = tuple(suffix for suffix, kind in _SUFFIXES.items() if kind == "svmlight")
"""Suffixes of files that contain their labels."""
_HEAD = 65_536
_UNREADABLE = (OSError, EOFError, UnicodeError, zlib.error, zipfile.BadZipFile)
"""Errors that decompression and decoding raise for damaged files."""
_GZIP, _ZIP, _ZSTANDARD = b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
_ZSTANDARD_SKIPPABLE, _SKIPPABLE = b"\x2a\x4d\x18", bytes(range(0x50, 0x60))
"""First bytes of compressed data."""
_COMPRESSED = 2048
"""Bytes of zstandard decompressed at a time: they contain at most 64 MB."""


class Source:
    """An open input: its name in messages, its format, its bytes."""

    def __init__(self, name: str, stream: BinaryIO, format: str, file: BinaryIO | None, path: Path | None) -> None:
        self.name = name
        self.stream = stream
        self.format = format
        self.path = path
        self._file = file

    def read(self, size: int) -> bytes:
        """Return the next bytes; empty at the end."""
        try:
            return self.stream.read(size)
        except _UNREADABLE as error:
            raise DataError(f"{self.name} cannot be read further: {error}") from error

    def lines(self, longest: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield (number, bytes) of each line; None instead of a line of more than `longest` bytes."""
        reader = io.BufferedReader(cast("io.RawIOBase", _Raw(self)), 1 << 20)
        number = 0
        while data := reader.readline(longest + 1):
            number += 1
            if len(data) <= longest or data.endswith(b"\n"):
                yield number, data
                continue
            while data and not data.endswith(b"\n"):
                data = reader.readline(1 << 20)
            yield number, None

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._file is not None:
            self._file.close()


class _Raw(io.RawIOBase):
    """A source as a raw stream; bytes that a decoder returns beyond the requested size wait for the next call."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._rest or memoryview(self._source.read(len(buffer)))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self._rest = data[size:]
        return size


def open_source(path: str | os.PathLike[str], *, format: str | None, encoding: str) -> Source:
    """Open a path or ``-``; detect compression by the first bytes, the format by the suffix or the first bytes."""
    name = os.fspath(path)
    if name == "-":
        unpacked, _ = _unpacked(sys.stdin.buffer, "standard input", seekable=False)
        stream, found = _recognised("standard input", _decoded(unpacked, encoding), format)
        return Source("standard input", stream, found, None, None)
    place = Path(name)
    if place.is_dir():
        raise DataError(f"{name} is a folder; name its files in their order, such as {place / '*.csv'}")
    try:
        file = place.open("rb")
    except OSError as error:
        raise DataError(f"{name} cannot be opened: {error.strerror or error}") from error
    try:
        unpacked, inner = _unpacked(file, name, seekable=place.is_file())
        known = format or _format_of(inner or place.name)
        if inner is not None and known in ("parquet", "ipc"):
            raise DataError(
                f"{name} is a compressed {known} file; decompress it first: {known} has its own compression"
            )
        stream, found = _recognised(name, _decoded(unpacked, encoding), known)
    except VarifoldError:
        file.close()
        raise
    return Source(name, stream, found, file, place)


def first_bytes(path: str, size: int) -> bytes:
    """Return the first bytes of a file after decompression; those before the damage if it is damaged."""
    with open(path, "rb") as file:
        unpacked, _ = _unpacked(file, path, seekable=True)
        parts: list[bytes] = []
        try:
            while size > 0 and (part := unpacked.read(size)):
                parts.append(part)
                size -= len(part)
        except _UNREADABLE:
            pass  # reported when the file is read
        return b"".join(parts)


def detect_format(path: str, head: bytes) -> str:
    """Return the format of a file: by its suffix, else by its first bytes."""
    return _format_of(path) or _sniffed(head)


def _format_of(name: str) -> str | None:
    """Return the format of the suffix of a name, ignoring suffixes of compression."""
    inner = [suffix for suffix in map(str.lower, Path(name).suffixes) if suffix not in (".gz", ".zst", ".zip")]
    return _SUFFIXES.get(inner[-1]) if inner else None


def _unpacked(stream: BinaryIO, name: str, seekable: bool) -> tuple[BinaryIO, str | None]:
    """Return the decompressed stream, and the name of the compressed file; None if it is not compressed."""
    head = stream.read(4)
    if head == _ZIP:
        return _zipped(stream, name, seekable)
    if seekable:
        stream.seek(0)
        whole = stream
    else:
        whole = cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", _Joined(head, stream))))
    if head.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=whole)), name
    if head == _ZSTANDARD or (head[1:] == _ZSTANDARD_SKIPPABLE and head[:1] in _SKIPPABLE):
        try:
            import zstandard
        except ImportError as error:
            raise missing_extra(f"{name} needs zstandard", "data") from error
        return cast("BinaryIO", _Zstandard(whole, zstandard)), name
    return whole, None


def _zipped(stream: BinaryIO, name: str, seekable: bool) -> tuple[BinaryIO, str]:
    """Open the one file in a zip archive."""
    if not seekable:
        raise DataError(f"{name} is a zip archive, which cannot be read from a pipe; use unzip -p")
    stream.seek(0)
    try:
        archive = zipfile.ZipFile(stream)
        files = [i.filename for i in archive.infolist() if not i.is_dir() and not i.filename.startswith("__MACOSX/")]
        if len(files) == 1:
            return cast("BinaryIO", archive.open(files[0])), files[0]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{name} cannot be read as a zip archive: {error}") from error
    shown = ", ".join(files[:5]) + (", ..." if len(files) > 5 else "")
    hint = "; save the spreadsheet as CSV" if any(file.startswith("xl/") for file in files) else "; extract it"
    raise DataError(f"{name} is a zip archive of {len(files)} files ({shown}), not of one{hint}")


class _Joined(io.RawIOBase):
    """Bytes that were read already, and the rest of their stream."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head or self._stream.read(len(buffer))
        self._head = data[len(buffer) :]
        data = data[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)


class _Zstandard(io.RawIOBase):
    """Consecutive frames of zstandard; a file that is cut off is an error, not a shorter file."""

    def __init__(self, stream: BinaryIO, library: Any) -> None:
        self._stream = stream
        self._library = library
        self._frame: Any = None
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while data := self._rest or self._stream.read(_COMPRESSED):
            self._rest = b""
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                out: bytes = self._frame.decompress(data)
            except self._library.ZstdError as error:
                raise OSError(str(error)) from error
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
            if out:
                return out
        if self._frame is not None:
            raise EOFError("the compressed file ends before its end-of-stream marker")
        return b""


def _decoded(stream: BinaryIO, encoding: str) -> BinaryIO:
    """Return the stream itself if it is UTF-8, else its text encoded as UTF-8."""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise DataError(f"no encoding is called {encoding!r}; try utf-8, latin-1, cp1252 or utf-16") from None
    if name in ("utf-8", "ascii"):
        return stream
    return cast("BinaryIO", codecs.EncodedFile(stream, "utf-8", name))


class _Prefixed(io.RawIOBase):
    """A stream with bytes put back in front."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if self._head:
            data, self._head = self._head, b""
            return data
        return self._stream.read(size)


def _recognised(name: str, stream: BinaryIO, format: str | None) -> tuple[BinaryIO, str]:
    """Return the stream without a byte order mark, and its format."""
    if format in ("parquet", "ipc"):
        return stream, format
    try:
        head = stream.read(_HEAD)
    except _UNREADABLE as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is UTF-16 text; pass encoding='utf-16'")
    if format is None and re.match(rb"\s*\[\s*[{\[]", head.removeprefix(codecs.BOM_UTF8)):
        raise DataError(f"{name} is one JSON array; write JSON lines instead, an object a line (jq -c '.[]' does it)")
    if format is None and re.match(rb"\s*\{\s*\n\s*\"", head.removeprefix(codecs.BOM_UTF8)):
        raise DataError(f"{name} has JSON objects over several lines; write an object a line (jq -c . does it)")
    return cast("BinaryIO", _Prefixed(head.removeprefix(codecs.BOM_UTF8), stream)), format or _sniffed(head)


def _sniffed(head: bytes) -> str:
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"PAR1"):
        return "parquet"
    if text.startswith(b"ARROW1"):
        return "ipc"
    if text.startswith(b"{"):
        return "jsonl"
    if re.match(rb"(%[^\n]*\n|\s)*@relation", text, re.IGNORECASE):
        return "arff"
    if re.match(rb"[-+.\w]+([ \t]+\d+:[-+.\deE]+)+[ \t]*(#[^\n]*)?(\r?\n|$)", text):
        return "svmlight"
    return "csv"
