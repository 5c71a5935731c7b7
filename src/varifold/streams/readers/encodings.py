"""Detect the encoding of text files, and report the files that are not UTF-8 before any of them is read."""

from __future__ import annotations

import codecs
import os
import re
import warnings
from collections.abc import Sequence
from typing import Any

from varifold.errors import DataError, VarifoldWarning
from varifold.streams.readers.sources import detect_format, first_bytes

__all__ = ["detect_encodings"]

SAMPLE = 1 << 22
"""Number of bytes, after decompression, from which the encoding of a file is detected."""
_GUESSED = ("csv", "arff")
"""Formats that may have any encoding; JSON is UTF-8 by definition."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_INVALID, _OTHER = re.compile("[\udc80-\udcff]"), re.compile(r"[^\x00-\x7f]")
_WORD = re.compile(r"\w*[^\x00-\x7f\W]\w*")


def detect_encodings(paths: Sequence[Any], format: str | None, quiet: bool) -> list[str]:
    """Return the encoding of each file; unless `quiet`, warn about files that are not UTF-8 or differ from others."""
    encodings, words = [], []
    for path in paths:
        name = os.fspath(path)
        sample = first_bytes(name, SAMPLE) if name != "-" and os.path.isfile(name) else b""
        encoding = _encoding_of(sample, format or detect_format(name, sample))
        if b"\0" in sample and encoding not in ("utf-8", "utf-16"):
            raise DataError(f"{name} is not text: it holds zero bytes; if it is, pass encoding (--encoding)")
        encodings.append(encoding)
        words.append("" if encoding == "utf-8" else _example(sample, encoding))
    for encoding in dict.fromkeys(encodings):
        different = [i for i, each in enumerate(encodings) if each == encoding]
        certain = encoding == "utf-8" or (encoding == "utf-16" and len(different) == len(paths))
        if not certain and not quiet:
            _warn([str(paths[i]) for i in different], encoding, words[different[0]], len(paths))
    return encodings


def _encoding_of(sample: bytes, format: str) -> str:
    """Detect UTF-16 by its mark, and text that is not UTF-8 by more invalid bytes than valid other characters."""
    if sample.startswith(_UTF16):
        return "utf-16"
    if format not in _GUESSED or sample.isascii():
        return "utf-8"
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(sample)
    if 2 * len(_INVALID.findall(text)) <= len(_OTHER.findall(text)):
        return "utf-8"  # single invalid bytes are reported with their rows
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _example(sample: bytes, encoding: str) -> str:
    """Return the first word that another encoding would read differently."""
    word = _WORD.search(sample.decode(encoding, "replace"))
    return "" if word is None else f", such as {word.group()[:30]!r}"


def _warn(files: list[str], encoding: str, word: str, total: int) -> None:
    """Name the files, how they are read, and how to change it."""
    subject = f"{files[0]} is" if len(files) == 1 else f"{files[0]} and {len(files) - 1} more are"
    others = total - len(files)
    unlike = f", unlike the other {others}" if others > 1 else ", unlike the other file" if others else ""
    warnings.warn(
        f"{subject} not UTF-8{unlike}; read as {encoding}{word}; if that is wrong, pass encoding (--encoding)",
        VarifoldWarning,
        stacklevel=2,
    )
