"""Format of model files: plain safetensors, every array under its name, the header as JSON in the metadata.

Any safetensors tool can open a file. The metadata has one entry, ``varifold``: JSON that begins with the SHA-256 digest
of all other bytes, then the number of the format, then the header (method, parameters, labels, version). Reading runs
no code, and the sizes of all arrays are checked against the size of the file before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from varifold._version import __version__
from varifold.base.atomic import replace_file
from varifold.errors import DataError, ModelFileError

FORMAT = 1
"""Format version that is written; files of all earlier versions can be read."""
_KEY = "varifold"
"""Name of the only metadata entry."""
_DIGEST = 64
"""Length of a digest in hexadecimal digits."""
_MARK = rb"{\"sha256\":\""
"""Bytes before the digest: the beginning of JSON inside JSON."""
_LONGEST_HEADER = 100_000_000
"""Maximum size of a safetensors header in bytes, by its specification."""
_NONE, _STR, _INT = 0, 1, 2
Arrays = dict[str, np.ndarray[Any, Any]]
Source = str | os.PathLike[str]
"""Origin of data, for messages: a path, or a description of bytes in memory."""
MISFITS = (
    *(KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError, NotImplementedError),
    RecursionError,
)
"""Exceptions that invalid content raises while a learner is loaded; damaged data never raises anything else."""
_TYPES = {
    **{"<f8": "F64", "<f4": "F32", "|b1": "BOOL"},
    **{"<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8", "<u8": "U64", "<u4": "U32", "<u2": "U16", "|u1": "U8"},
}
"""NumPy dtypes that a file can hold, with their safetensors names."""


# ---------------------------------------------------------------- encoding


def encode(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Encode header and arrays, adding the version to the header; the same content always gives the same bytes."""
    text = json.dumps({**header, "version": __version__}, sort_keys=True)
    meta = f'{{"sha256":"{"0" * _DIGEST}","format":{FORMAT},"header":{text}}}'
    layout: dict[str, Any] = {"__metadata__": {_KEY: meta}}
    parts: list[Any] = []
    end = 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name)):  # large items first: all are aligned
        array = arrays[name]
        if array.dtype.str not in _TYPES:
            raise ValueError(f"{name} holds numbers of type {array.dtype}, which a file cannot")
        begin, end = end, end + array.nbytes
        layout[name] = {"dtype": _TYPES[array.dtype.str], "shape": array.shape, "data_offsets": [begin, end]}
        parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    head = json.dumps(layout, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    head = len(head).to_bytes(8, "little") + head
    at = _digest_place(head)
    digest = _digest(head, at, parts)
    return b"".join([head[:at], digest, head[at + _DIGEST :], *parts])


def _digest_place(data: bytes) -> int:
    """Return the offset of the digest, -1 if there is none."""
    at = data.find(_MARK)
    return at + len(_MARK) if at >= 0 else -1


def _digest(data: bytes, at: int, more: Iterable[Any] = ()) -> bytes:
    """Digest all bytes but those of the digest itself, which is at this offset."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    for part in (view[at + _DIGEST :], *more):
        digest.update(part)
    return digest.hexdigest().encode()


# ---------------------------------------------------------------- decoding


def decode(data: bytes, source: Source) -> tuple[dict[str, Any], Arrays]:
    """Return the header and arrays that encode() encoded.

    Raise ModelFileError, which names the source, unless the data is sound and of a known format.
    """
    description = _description(data, source)
    try:
        arrays = safetensors.numpy.load(data)
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{source} is damaged or truncated: {error}") from error
    except KeyError as error:
        raise ModelFileError(f"{source} is damaged: it has an array of type {error}, which no learner uses") from error
    at = _digest_place(data)
    if at < 0 or data[at : at + _DIGEST] != _digest(data, at):
        raise ModelFileError(f"{source} is damaged: its digest does not match its content")
    header = description.get("header")
    if not isinstance(header, dict) or not isinstance(header.get("method"), str):
        raise ModelFileError(f"{source} does not say which method it holds")
    return header, arrays


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as every model file does."""
    start = f'{{"__metadata__":{{"{_KEY}"'.encode()
    with open(path, "rb") as file:
        return file.read(8 + len(start))[8:] == start


def _description(data: bytes, source: Source) -> dict[str, Any]:
    """Return the file's metadata (digest, format and header); raise ModelFileError if its format cannot be read."""
    text = _metadata(data, source).get(_KEY)
    if text is None:
        raise ModelFileError(f"{source} is a safetensors file, but not one of varifold's")
    description = _json(text, source, "description")
    number = description.get("format")
    if type(number) is not int or number < 1:
        raise ModelFileError(f"{source} is damaged: it gives its format as {str(number)[:20]!r}")
    if number > FORMAT:
        raise ModelFileError(
            f"{source} has format {str(number)[:20]}; this version reads up to {FORMAT}: upgrade varifold to load it"
        )
    return description


def _metadata(data: bytes, source: Source) -> dict[str, Any]:
    """Return the metadata of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or data[8:9] != b"{" or length > _LONGEST_HEADER:
        raise ModelFileError(f"{source} is not a varifold model file ({len(data)} bytes, no safetensors header)")
    if len(data) < 8 + length:
        raise ModelFileError(f"{source} is truncated: its header alone needs {8 + length} bytes, it has {len(data)}")
    meta = _json(data[8 : 8 + length], source, "header").get("__metadata__", {})
    if not isinstance(meta, dict) or not all(isinstance(value, str) for value in meta.values()):
        raise ModelFileError(f"{source} is damaged: its metadata is not text by name")
    return meta


def _json(text: str | bytes, source: Source, what: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{source} is damaged: its {what} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{source} is damaged: its {what} is not a JSON object")
    return value


def decode_bytes(data: bytes) -> tuple[dict[str, Any], Arrays, str]:
    """Return header and arrays of a model file in memory, and a description of their origin."""
    if not isinstance(data, bytes | bytearray):
        raise DataError(f"from_bytes takes the bytes that to_bytes() gave. Got a {type(data).__name__} instead.")
    source = f"the data ({len(data):,} bytes)"
    return *decode(bytes(data), source), source


# ---------------------------------------------------------------- files


def write(path: Source, data: bytes) -> None:
    """Write encoded data to exactly this path; on an error the old file stays intact."""
    target = _as_path(path)
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{path} is a folder or a device; a model is written to a file")
    try:
        replace_file(target, data)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # not the temporary file's name


def read(path: Source) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a model file."""
    return decode(_as_path(path).read_bytes(), path)


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelFileError(f"the path of a model file is a str or a Path. Got {path!r} instead.")
    return Path(path)


# ---------------------------------------------------------------- names and labels


def pack_names(names: list[str | int | None]) -> Arrays:
    """Encode names as bytes with offsets, so that a million of them are three arrays."""
    kinds = np.array([_NONE if n is None else _STR if isinstance(n, str) else _INT for n in names], dtype=np.uint8)
    parts = [b"" if n is None else str(n).encode("utf-8", "surrogatepass") for n in names]
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(p) for p in parts], out=offsets[1:])
    return {
        "names.kind": kinds,
        "names.offsets": offsets,
        "names.bytes": np.frombuffer(b"".join(parts), dtype=np.uint8),
    }


def unpack_names(arrays: Arrays) -> list[str | int | None]:
    """Decode what pack_names() encoded."""
    kinds, ends, data = arrays["names.kind"], arrays["names.offsets"], arrays["names.bytes"]
    if not kinds.dtype == data.dtype == np.uint8 or ends.dtype != np.int64 or not kinds.ndim == data.ndim == 1:
        raise ValueError("the names are arrays of other types")
    if ends.shape != (len(kinds) + 1,) or ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise ValueError("the names do not follow each other")
    text_of, offsets = data.tobytes(), ends.tolist()
    names: list[str | int | None] = []
    for i, kind in enumerate(kinds.tolist()):
        text = text_of[offsets[i] : offsets[i + 1]].decode("utf-8", "surrogatepass")
        names.append(None if kind == _NONE else text if kind == _STR else int(text))
    return names


def pack_label(y: Any) -> Any:
    """Encode a label as JSON that keeps its type."""
    if isinstance(y, bool | str):
        return y
    if isinstance(y, int):
        return {"int": str(y)}
    if isinstance(y, float):
        return {"float": y.hex()}
    if isinstance(y, bytes):
        return {"bytes": y.hex()}
    if isinstance(y, tuple):
        return {"tuple": [pack_label(part) for part in y]}
    raise ModelFileError(
        f"the label {y!r} of type {type(y).__name__} cannot be stored in a file; "
        "use str, int, float, bool, bytes or tuples of these as labels"
    )


def unpack_label(packed: Any) -> Any:
    """Decode what pack_label() encoded."""
    if not isinstance(packed, dict):
        return packed
    ((kind, value),) = packed.items()
    if kind == "int":
        return int(value)
    if kind == "float":
        return float.fromhex(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    return tuple(unpack_label(part) for part in value)
