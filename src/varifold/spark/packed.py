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

from varifold.base.files import Arrays, pack_label, unpack_label
from varifold.errors import ModelFileError

_HEAD = struct.Struct("<4sII")
_MARK = b"vfk1"

Dump = tuple[list[str | int | None], list[Any], Arrays]


def pack(state: Dump, more: dict[str, Any]) -> bytes:
    """The state of an engine, and JSON that belongs to it, as bytes."""
    names, labels, arrays = state
    shapes = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = {"names": names, "labels": [pack_label(label) for label in labels], "arrays": shapes, "more": more}
    text = json.dumps(head, separators=(",", ":")).encode()
    body = b"".join([text, *[np.ascontiguousarray(array).tobytes() for array in arrays.values()]])
    return _HEAD.pack(_MARK, zlib.crc32(body), len(text)) + body


def unpack(data: bytes) -> tuple[Dump, dict[str, Any]]:
    """What pack() packed; ModelFileError for anything else."""
    if len(data) < _HEAD.size or data[:4] != _MARK:
        raise ModelFileError(f"{len(data):,} bytes of a key's state are not what this version writes")
    _, checksum, length = _HEAD.unpack_from(data)
    body = memoryview(bytearray(data))[_HEAD.size :]  # arrays over it can be written to, as engines expect
    if zlib.crc32(body) != checksum:
        raise ModelFileError(f"a key's state of {len(data):,} bytes is damaged: its checksum differs")
    head = json.loads(bytes(body[:length]))
    arrays, at = {}, length
    for name, dtype, shape in head["arrays"]:
        kind, count = np.dtype(dtype), math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype=kind, count=count, offset=at).reshape(shape)
        at += count * kind.itemsize
    return (head["names"], [unpack_label(label) for label in head["labels"]], arrays), head["more"]
