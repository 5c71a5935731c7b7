"""A bucket's state as one row, for applyInPandasWithState, which reads and writes the state of a group as a whole.

The row has the token, the log as text and the snapshots of all keys as bytes. Every micro-batch that touches the bucket
writes all of it, so that buckets should be small: a few hundred keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from varifold.base import files
from varifold.base.saving import pack_learners, unpack_learners
from varifold.spark.bucket import Key, Token

SCHEMA = "counter long, nonce binary, buckets int, wait int, model string, log string, keys binary"
"""The row, in Spark's words."""
_METHOD = "bucket"


class RowStore:
    """A bucket's part of the state, held here until `row` gives it back; None before the first micro-batch."""

    def __init__(self, row: tuple[Any, ...] | None) -> None:
        self._token: Token | None = None
        self._log: list[str] = []
        self._keys: dict[Key, bytes] = {}
        if row is not None:
            counter, nonce, buckets, wait, model, log, keys = row
            self._token = Token(int(counter), bytes(nonce), int(buckets), int(wait), str(model))
            self._log = json.loads(log)
            self._keys = _decoded(bytes(keys))

    def row(self) -> tuple[Any, ...]:
        """What the next micro-batch starts from."""
        if self._token is None:
            raise ValueError("a bucket writes its token before its state is taken")
        return (*self._token, json.dumps(self._log), _encoded(self._keys))

    def token(self) -> Token | None:
        """The token, None before the first micro-batch."""
        return self._token

    def set_token(self, token: Token) -> None:
        """Write the token."""
        self._token = token

    def log(self) -> Iterator[str]:
        """What was appended since the log was cleared, in order."""
        return iter(self._log)

    def append(self, counter: int, text: str) -> None:
        """Add to the log the rows of the micro-batch of this counter."""
        self._log.append(text)

    def clear_log(self) -> None:
        """Empty the log."""
        self._log = []

    def snapshot(self, key: Key) -> bytes | None:
        """The bytes written for a key."""
        return self._keys.get(key)

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""
        self._keys[key] = data

    def snapshots(self) -> dict[Key, bytes]:
        """The bytes of every key."""
        return dict(self._keys)


def _encoded(keys: dict[Key, bytes]) -> bytes:
    """Encode keys with their bytes in the format of model files."""
    return files.encode({"method": _METHOD}, {**files.pack_names(list(keys)), **pack_learners(list(keys.values()))})


def _decoded(data: bytes) -> dict[Key, bytes]:
    """Decode what _encoded() encoded."""
    _, arrays = files.decode(data, f"the state of a bucket, {len(data):,} bytes,")
    names, parts = files.unpack_names(arrays), unpack_learners(arrays)
    return {key: part for key, part in zip(names, parts, strict=True) if key is not None}
