"""The format of model files: safetensors with a checksum, in a file or in memory. Loading never runs code."""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from varifold._numeric.words import pack, unpack
from varifold._version import __version__
from varifold.base.atomic import replace_file
from varifold.errors import DataError, ModelFileError

FORMAT = 2
"""Of the files written. 1, in which the arrays stand as they are, is read for ever."""
YOUNG_FORMAT = 3
"""Of files that hold the instances learned in place of the state (`young`)."""
_NONE, _STR, _INT = 0, 1, 2
Arrays = dict[str, np.ndarray[Any, Any]]
Source = str | os.PathLike[str]
"""Where the data came from, for messages: a path, or words for bytes in memory."""
MISFITS = (
    *(KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError, NotImplementedError),
    RecursionError,
)
"""What unsound content raises on its way into a learner; damaged data never raises anything else."""
_LONGEST_FORMAT = 9
"""Digits of the format's number, at most."""


_TYPES = frozenset(("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1"))
"""Of arrays in a file."""
_INDEX = (1 << 16, 64)
"""Bytes of an index, at most: so many, and so many for each byte of its packed form."""
_WORDS = (1 << 20, 512)
"""Words of the arrays, at most: so many, and so many for each byte of their packed form: no file takes any memory."""


def encode(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Header and arrays in the format of a model file; the header also gets the library's version.

    The arrays stand one after the other, packed; an index says their names, types and shapes. The same content always
    gives the same bytes.
    """
    text = json.dumps({**header, "version": __version__}, sort_keys=True, ensure_ascii=True)
    names = sorted(arrays)
    listed = [(name, arrays[name].dtype.str, arrays[name].shape) for name in names]
    for name, kind, _ in listed:
        if kind not in _TYPES:
            raise ValueError(f"{name} holds numbers of type {arrays[name].dtype}, which a file cannot")
    index = zlib.compress(json.dumps(listed, separators=(",", ":")).encode(), 1)
    packed = pack(_joined([arrays[name] for name in names]))
    digest = hashlib.sha256(b"\n".join([text.encode(), index, packed])).hexdigest()
    version = YOUNG_FORMAT if holds_instances(arrays) else FORMAT
    meta = {"varifold.format": str(version), "varifold.header": text, "varifold.sha256": digest}
    return _container(meta, {"index": index, "packed": packed})


def holds_instances(arrays: Arrays) -> bool:
    """Whether the arrays are those of a young learner's file."""
    return any(name.startswith("instances.") for name in arrays)


def _joined(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The bytes of the arrays, each filled up to whole words."""
    parts = [part for a in arrays for part in (a.tobytes(), bytes(-a.nbytes % 8))]
    return np.frombuffer(b"".join(parts), dtype=np.uint64)


def _container(meta: Mapping[str, str], parts: Mapping[str, bytes]) -> bytes:
    """A safetensors file of byte strings."""
    head: dict[str, Any] = {"__metadata__": meta}
    at = 0
    for name, part in parts.items():
        head[name] = {"dtype": "U8", "shape": [len(part)], "data_offsets": [at, at + len(part)]}
        at += len(part)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts.values()])


def decode(data: bytes, source: Source) -> tuple[dict[str, Any], Arrays]:
    """What encode() encoded; ModelFileError, which names the source, unless the data is sound and of a known format."""
    meta = _metadata(data, source)
    version = meta.get("varifold.format")
    if version is None:
        raise ModelFileError(f"{source} is a safetensors file, but not one of varifold's")
    if not (len(version) <= _LONGEST_FORMAT and version.isascii() and version.isdigit() and int(version) >= 1):
        raise ModelFileError(f"{source} is damaged: it gives its format as {version[: 2 * _LONGEST_FORMAT]!r}")
    if int(version) > YOUNG_FORMAT:
        raise ModelFileError(
            f"{source} has format {version}; this version reads up to {YOUNG_FORMAT}: upgrade varifold to load it"
        )
    try:
        arrays = safetensors.numpy.load(data)
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{source} is damaged or truncated: {error}") from error
    except KeyError as error:
        raise ModelFileError(f"{source} is damaged: it has an array of type {error}, which no learner uses") from error
    text = meta.get("varifold.header", "")
    if (_checksum(text, arrays) if version == "1" else _packed_checksum(text, arrays)) != meta.get("varifold.sha256"):
        raise ModelFileError(f"{source} is damaged: its checksum does not match its content")
    return _header(text, source), arrays if version == "1" else _unpacked(arrays, source)


def decode_bytes(data: bytes) -> tuple[dict[str, Any], Arrays, str]:
    """Header and arrays of a model file in memory, and words for where they came from."""
    if not isinstance(data, bytes | bytearray):
        raise DataError(f"from_bytes takes the bytes that to_bytes() gave. Got a {type(data).__name__} instead.")
    source = f"the data ({len(data):,} bytes)"
    return *decode(bytes(data), source), source


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model file to exactly this path: the whole file, or an error and the old one stays."""
    write_bytes(path, encode(header, arrays))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write encoded data to exactly this path."""
    target = _as_path(path)
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{path} is a folder or a device; a model is written to a file")
    try:
        replace_file(target, data)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # not the temporary file's name


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a model file."""
    return decode(_as_path(path).read_bytes(), path)


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelFileError(f"the path of a model file is a str or a Path. Got {path!r} instead.")
    return Path(path)


def _header(text: str, source: Source) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{source} is damaged: its description is not JSON ({error})") from error
    if not isinstance(header, dict) or not {"method", "params", "labels"} <= header.keys():
        raise ModelFileError(f"{source} does not say which method it holds, with which parameters and labels")
    return header


def restore(engine: Any, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Fill a new engine from decoded data.

    ValueError, KeyError and their like when the data does not fit, or when the engine filled with it would not give
    arrays of the same names, types and shapes again.
    """
    state = {name: a for name, a in arrays.items() if not name.startswith("names.")}
    engine.fill(unpack_names(arrays), [unpack_label(y) for y in header["labels"]], state)
    held = engine.dump()[2]
    if held.keys() != state.keys():
        raise ValueError(f"arrays that do not belong to it: {sorted(held.keys() ^ state.keys())}")
    for name, array in state.items():
        like = held[name]
        if (array.dtype, array.shape) != (like.dtype, like.shape):
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {like.dtype} {like.shape}")


def _metadata(data: bytes, source: Source) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or data[8:9] != b"{" or length > 100_000_000:
        raise ModelFileError(f"{source} is not a varifold model file ({len(data)} bytes, no safetensors header)")
    if len(data) < 8 + length:
        raise ModelFileError(f"{source} is truncated: its header alone needs {8 + length} bytes, it has {len(data)}")
    try:
        found = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{source} is damaged: its header cannot be read ({error})") from error
    meta = found.get("__metadata__", {}) if isinstance(found, dict) else {}
    if not isinstance(meta, dict) or not all(isinstance(value, str) for value in meta.values()):
        raise ModelFileError(f"{source} is damaged: its metadata is not text by name")
    return meta


def _packed_checksum(text: str, parts: Arrays) -> str:
    """Of a file of format 2; of one that has not both parts, none."""
    if parts.keys() != {"index", "packed"}:
        return ""
    return hashlib.sha256(b"\n".join([text.encode(), *(parts[n].tobytes() for n in ("index", "packed"))])).hexdigest()


def _unpacked(parts: Arrays, source: Source) -> Arrays:
    """The arrays of a file of format 2, whose checksum is right."""
    try:
        index = zlib.decompressobj().decompress(parts["index"].tobytes(), _most(_INDEX, parts["index"]))
        listed = [_listed(*entry) for entry in json.loads(index)]
        ends = np.cumsum([0, *[-(-size // 8) for *_, size in listed]]).tolist()
        if ends[-1] > _most(_WORDS, parts["packed"]):
            raise ValueError(f"{8 * ends[-1]:,} bytes in {len(parts['packed'])}")
        data = unpack(np.ascontiguousarray(parts["packed"]), ends[-1]).view(np.uint8)
        return {
            name: data[8 * start : 8 * start + size].view(dtype).reshape(shape)
            for start, (name, dtype, shape, size) in zip(ends, listed, strict=False)
        }
    except (*MISFITS, zlib.error, MemoryError) as error:
        raise ModelFileError(f"{source} is damaged: its arrays cannot be read ({error})") from error


def _most(bounds: tuple[int, int], packed: np.ndarray[Any, Any]) -> int:
    """How much may become of packed bytes."""
    return bounds[0] + bounds[1] * len(packed)


def _listed(name: str, kind: str, shape: list[int]) -> tuple[str, np.dtype[Any], tuple[int, ...], int]:
    """An entry of the index, checked: name, type, shape and bytes of an array."""
    if not isinstance(name, str) or kind not in _TYPES or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{name!r} of type {kind!r} and shape {shape!r}")
    dtype = np.dtype(kind)
    return name, dtype, tuple(shape), math.prod(shape) * dtype.itemsize


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        a = arrays[name]
        digest.update(f"\n{name} {a.dtype.str} {a.shape}\n".encode())
        digest.update(a.tobytes())
    return digest.hexdigest()


def pack_names(names: list[str | int | None]) -> Arrays:
    """Names as bytes with offsets, so that a million of them are three arrays."""
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
    """What pack_names() packed."""
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
    """A label as JSON that keeps its type."""
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


def unpack_label(found: Any) -> Any:
    """What pack_label() packed."""
    if not isinstance(found, dict):
        return found
    ((kind, value),) = found.items()
    if kind == "int":
        return int(value)
    if kind == "float":
        return float.fromhex(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    return tuple(unpack_label(part) for part in value)
