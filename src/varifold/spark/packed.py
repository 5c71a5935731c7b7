"""A learner's state as compact bytes, beside the numbers that stream processing keeps with it.

A model file says which method it holds, with which parameters, and is checked by loading it again. Here one model
stands for all keys and states are written millions of times, so only the state is written, with a checksum. Reading
runs no code.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from typing import Any

import numpy as np

from varifold._numeric import words
from varifold.base.files import Arrays, pack_label, unpack_label
from varifold.errors import ModelFileError

_HEAD = struct.Struct("<4sII")
_MARK = b"vfk2"
_UNPACKED = b"vfk1"
"""Of states in which the arrays stand as they are, which are still read."""
_LONGEST_HEAD = 1 << 28
_MOST_WORDS_PER_BYTE = 4096
"""By which arrays exceed their packed form, at most: bytes cannot ask for any amount of memory."""

Dump = tuple[list[str | int | None], list[Any], Arrays]


def pack(state: Dump, more: dict[str, Any]) -> bytes:
    """The state of an engine, and JSON that belongs to it, as bytes; what repeats itself is stored once."""
    names, labels, arrays = state
    shapes = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = {"names": names, "labels": [pack_label(label) for label in labels], "arrays": shapes, "more": more}
    text = zlib.compress(json.dumps(head, separators=(",", ":")).encode(), 1)
    parts = [part for a in arrays.values() for part in (a.tobytes(), bytes(-a.nbytes % 8))]
    body = text + words.pack(np.frombuffer(b"".join(parts), dtype=np.uint64))
    return _HEAD.pack(_MARK, zlib.crc32(body), len(text)) + body


def unpack(data: bytes) -> tuple[Dump, dict[str, Any]]:
    """What pack() packed; ModelFileError for anything else."""
    if len(data) < _HEAD.size or data[:4] not in (_MARK, _UNPACKED):
        raise ModelFileError(f"{len(data):,} bytes of a key's state are not what this version writes")
    mark, checksum, length = _HEAD.unpack_from(data)
    body = memoryview(bytearray(data))[_HEAD.size :]  # arrays over it can be written to, as engines expect
    if zlib.crc32(body) != checksum:
        raise ModelFileError(f"a key's state of {len(data):,} bytes is damaged: its checksum differs")
    text = bytes(body[:length])
    if mark == _MARK:
        text = zlib.decompressobj().decompress(text, _LONGEST_HEAD)
    head = json.loads(text)
    listed = [(name, np.dtype(kind), shape) for name, kind, shape in head["arrays"]]
    arrays = _arrays(listed, body[length:], 8 if mark == _MARK else 1)
    return (head["names"], [unpack_label(label) for label in head["labels"]], arrays), head["more"]


def _arrays(listed: list[tuple[str, np.dtype[Any], list[int]]], body: memoryview, step: int) -> Arrays:
    """The arrays of a body, each of which begins at a multiple of `step` bytes: of 8 if they are packed."""
    sizes = [math.prod(shape) * kind.itemsize for _, kind, shape in listed]
    starts = np.cumsum([0, *[-(-size // step) * step for size in sizes]]).tolist()
    if step == 8:
        if starts[-1] > 8 * _MOST_WORDS_PER_BYTE * len(body):
            raise ModelFileError(f"a key's state says that it holds {starts[-1]:,} bytes of arrays in {len(body):,}")
        body = memoryview(bytearray(words.unpack(bytes(body), starts[-1] // 8).tobytes()))
    return {
        name: np.frombuffer(body, dtype=kind, count=math.prod(shape), offset=start).reshape(shape)
        for start, (name, kind, shape) in zip(starts, listed, strict=False)
    }
