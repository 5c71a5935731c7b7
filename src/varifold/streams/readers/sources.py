"""Bytes of files, compressed ones and standard input, and what format they are in."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

from varifold.errors import DataError, MissingExtraError, VarifoldError

__all__ = ["FORMATS", "Source", "open_source"]

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
_HEAD = 65_536


class Source:
    """An open input: its name in messages, its format, its bytes."""

    def __init__(self, name: str, stream: BinaryIO, format: str, file: BinaryIO | None, path: Path | None) -> None:
        self.name = name
        self.stream = stream
        self.format = format
        self.path = path
        self._file = file

    def read(self, size: int) -> bytes:
        """The next bytes; empty at the end."""
        try:
            return self.stream.read(size)
        except (OSError, EOFError, UnicodeError) as error:
            raise DataError(f"{self.name} cannot be read on: {error}") from error

    def lines(self) -> io.BufferedReader:
        """The same bytes line by line."""
        return io.BufferedReader(cast("io.RawIOBase", _Raw(self)), 1 << 20)

    def close(self) -> None:
        """Give the file back; standard input stays open."""
        if self._file is not None:
            self._file.close()


class _Raw(io.RawIOBase):
    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def open_source(path: str | os.PathLike[str], *, format: str | None, encoding: str) -> Source:
    """Open a path or ``-``; the format comes from the suffix, else from the first bytes."""
    name = os.fspath(path)
    if name == "-":
        stream, found = _described("standard input", _decoded(sys.stdin.buffer, encoding), format)
        return Source("standard input", stream, found, None, None)
    place = Path(name)
    try:
        file = place.open("rb")
    except OSError as error:
        raise DataError(f"{name} cannot be opened: {error.strerror or error}") from error
    suffixes = [suffix.lower() for suffix in place.suffixes]
    inner = [suffix for suffix in suffixes if suffix not in (".gz", ".zst")]
    known = _SUFFIXES.get(inner[-1]) if inner else None
    try:
        unpacked = _unpacked(file, suffixes[-1] if suffixes else "", name)
        stream, found = _described(name, _decoded(unpacked, encoding), format or known)
    except VarifoldError:
        file.close()
        raise
    return Source(name, stream, found, file, place)


def _unpacked(stream: BinaryIO, suffix: str, name: str) -> BinaryIO:
    if suffix == ".gz":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError(f'{name} needs zstandard: pip install "varifold[data]"') from error
        return cast("BinaryIO", _Zstandard(stream, zstandard))
    return stream


class _Zstandard(io.RawIOBase):
    """Frames of zstandard one after another; a file that is cut off is an error, not a shorter file."""

    def __init__(self, stream: BinaryIO, library: Any) -> None:
        self._stream = stream
        self._library = library
        self._frame: Any = None

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(1 << 17)
        while data:
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                out: bytes = self._frame.decompress(data)
            except self._library.ZstdError as error:
                raise OSError(str(error)) from error
            rest = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
            if rest:
                self._stream = cast("BinaryIO", _Pushed(rest, self._stream))
            if out:
                return out
            data = self._stream.read(1 << 17)
        if self._frame is not None:
            raise EOFError("the compressed file ends before its end-of-stream marker")
        return b""


def _decoded(stream: BinaryIO, encoding: str) -> BinaryIO:
    """The stream itself when it is UTF-8, else its text coded anew as UTF-8."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise DataError(f"no encoding is called {encoding!r}; try utf-8, latin-1, cp1252 or utf-16") from None
    if name in ("utf-8", "ascii"):
        return stream
    return cast("BinaryIO", codecs.EncodedFile(stream, "utf-8", name))


class _Pushed(io.RawIOBase):
    """A stream with bytes put back in front."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if self._head:
            data, self._head = self._head, b""
            return data
        return self._stream.read(size)


def _described(name: str, stream: BinaryIO, format: str | None) -> tuple[BinaryIO, str]:
    """The stream without a byte order mark, and its format."""
    if format in ("parquet", "ipc"):
        return stream, format
    try:
        head = stream.read(_HEAD)
    except (OSError, EOFError, UnicodeError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name} is UTF-16 text; pass encoding='utf-16'")
    return cast("BinaryIO", _Pushed(head.removeprefix(codecs.BOM_UTF8), stream)), format or _sniffed(head)


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
