"""Files of learners that are made of learners, such as a vote or one learner per key."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from varifold.base import files


class CompositeFile:
    """The methods of a learner whose file holds whole learners; it supplies `to_bytes` and `_restored`."""

    def to_bytes(self) -> bytes:
        """The content of the file that `save` would write."""
        raise NotImplementedError(f"{type(self).__name__} must define to_bytes()")

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: files.Arrays, source: files.Source) -> Self:
        """A new one with what decoded data holds."""
        raise NotImplementedError(f"{cls.__name__} must define _restored()")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` encoded, checked as a file is. It continues as if it had never stopped."""
        return cls._restored(*files.decode_bytes(data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners to exactly this path; on any error the file that was there stays."""
        files.write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote; it continues as if it had never stopped. Loading runs no code of the file."""
        return cls._restored(*files.read(path), path)


def pack_learners(parts: Sequence[bytes]) -> files.Arrays:
    """The bytes of several learners as arrays of a file."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return {"learners": np.frombuffer(b"".join(parts), dtype=np.uint8), "learners.offsets": offsets}


def unpack_learners(arrays: files.Arrays) -> list[bytes]:
    """The bytes that pack_learners() packed; ValueError where they do not follow each other."""
    data, ends = arrays["learners"].tobytes(), arrays["learners.offsets"].tolist()
    if ends[0] != 0 or ends[-1] != len(data) or sorted(ends) != ends:
        raise ValueError("the learners do not follow each other")
    return [data[start:end] for start, end in itertools.pairwise(ends)]
