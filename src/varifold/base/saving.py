"""Objects that model files hold: `save`, `load`, `to_bytes` and `from_bytes`, one implementation for all of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from varifold._version import __version__
from varifold.base import files
from varifold.base.registry import composites, detectors, models, transformers
from varifold.errors import ModelFileError

__all__ = ["Saved", "from_bytes", "load", "pack_learners", "unpack_learners"]


class Saved:
    """Base class of objects that a model file can hold.

    A subclass supplies `_content` and `_from_content`. `reading` records how its training data was read
    (target, id, time, types, ...), if known; files keep it.
    """

    reading: Mapping[str, Any]

    def _content(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return the header (method, params, labels and whatever else belongs to it) and the arrays of a file.

        Both are copies: they stay as they are when the object learns more.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _content()")

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        """Make a new object of what _content() returned; raise one of `files.MISFITS` if it does not fit."""
        raise NotImplementedError(f"{cls.__name__} must define _from_content()")

    def to_bytes(self) -> bytes:
        """Return the content of the file that `save` writes. The same state always gives the same bytes."""
        return encoded(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore what `to_bytes` encoded, checked as a file is. It continues as if it had never stopped."""
        made: Self = restored(cls, *files.decode_bytes(data))
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file to exactly this path.

        The bytes are loaded before they are written: a state that `load` would reject raises ModelFileError. On any
        error the file that was there stays.
        """
        data = self.to_bytes()
        try:
            self.from_bytes(data)
        except ModelFileError as error:
            raise _unsaved(self, error) from error
        files.write(path, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load what `save` wrote; it continues as if it had never stopped. Loading runs no code of the file."""
        made: Self = restored(cls, *files.read(path), path)
        return made


def load(path: str | os.PathLike[str]) -> Any:
    """Load the learner in a model file: of any registered method, one per key, or a vote."""
    return Saved.load(path)


def from_bytes(data: bytes) -> Any:
    """Restore the learner that `to_bytes` encoded: of any registered method, one per key, or a vote."""
    return Saved.from_bytes(data)


def encoded(saved: Saved, more: Mapping[str, Any] | None = None) -> bytes:
    """Encode an object, with more entries in its header if given: loading ignores them."""
    return capture(saved, more)()


def capture(saved: Saved, more: Mapping[str, Any] | None = None) -> Callable[[], bytes]:
    """Copy the current state of an object; return a function that encodes it, which another thread may call later."""
    header, arrays = saved._content()
    if saved.reading:
        header["reading"] = dict(saved.reading)

    def encode() -> bytes:
        try:
            return files.encode({**header, **(more or {})}, arrays)
        except files.MISFITS as error:
            raise _unsaved(saved, error) from error

    return encode


def restored(cls: type[Any], header: Mapping[str, Any], arrays: files.Arrays, source: files.Source) -> Any:
    """Make a new object of the class `cls`, or of one derived from it, from decoded data."""
    kind = _class_of(header["method"], cls, source)
    try:
        made = kind._from_content(header, arrays)
        if header.get("reading"):
            made.reading = dict(header["reading"])
    except ModelFileError:
        raise
    except files.MISFITS as error:
        raise ModelFileError(
            f"{source} does not hold a whole {header['method']!r}: {error!r}{_other_version(header)}"
        ) from error
    return made


def _class_of(method: str, cls: type[Any], source: files.Source) -> type[Any]:
    """Look up the class of a method: `cls` itself, or a registered one that is derived from it."""
    if method == f"{cls.__module__}:{cls.__qualname__}":
        return cls
    registries: tuple[Any, ...] = (models, detectors, composites, transformers)
    registry = next((known for known in registries if method in known), None)
    if registry is None:
        raise ModelFileError(f"{source} holds a {method!r}, which is not registered here; use its class's load()")
    kind: type[Any] = registry[method]
    # load() and from_bytes(), whose cls is Saved, are for learners; a transformer is loaded by its class
    if not issubclass(kind, cls) or (cls is Saved and registry is transformers):
        wanted = "learner" if cls is Saved else cls.__name__
        raise ModelFileError(
            f"{source} holds a {kind.__name__}, not a {wanted}; load it with the class {kind.__name__}"
        )
    return kind


def _unsaved(saved: Saved, error: Exception) -> ModelFileError:
    """Return the error of an object that cannot be saved."""
    reason = error if isinstance(error, ModelFileError) else repr(error)
    return ModelFileError(f"this {type(saved).__name__} was not saved, because it could not be loaded again: {reason}")


def _other_version(header: Mapping[str, Any]) -> str:
    """Name the version that wrote the data, if it is not this one."""
    version = header.get("version", __version__)
    return "" if version == __version__ else f" (written by varifold {version}, this is {__version__})"


# ---------------------------------------------------------------- learners made of learners


def pack_learners(parts: Sequence[bytes]) -> files.Arrays:
    """Store the files of several learners in two arrays: their bytes one after the other, and where each begins."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return {"learners": np.frombuffer(b"".join(parts), dtype=np.uint8), "learners.offsets": offsets}


def unpack_learners(arrays: files.Arrays) -> list[bytes]:
    """Return the files that pack_learners() stored; raise ValueError if they do not follow each other."""
    data, ends = arrays["learners"].tobytes(), arrays["learners.offsets"].tolist()
    if arrays["learners"].ndim != 1 or ends[0] != 0 or ends[-1] != len(data) or sorted(ends) != ends:
        raise ValueError("the learners do not follow each other")
    return [data[start:end] for start, end in itertools.pairwise(ends)]
