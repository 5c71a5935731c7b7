"""A bucket's state in memory, and as one row for applyInPandasWithState, which reads and writes a group's whole state.

The row has the token, the log as text and the snapshots of all keys as bytes. Every micro-batch that touches the bucket
writes all of it, so buckets should be small: a few hundred keys.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from varifold.errors import ModelFileError
from varifold.spark.bucket import Key, Token

__all__ = ["SCHEMA", "RowState"]

SCHEMA = "counter long, nonce binary, buckets int, wait int, model string, log string, keys binary"
"""Schema of the row, for Spark."""
_HEAD = struct.Struct("<II")


class RowState:
    """A bucket's state in memory; None as the token before the first micro-batch."""

    def __init__(self, token: Token | None, log: list[str], snapshots: dict[Key, bytes]) -> None:
        self._token = token
        self._log = log
        self.snapshots = snapshots

    @classmethod
    def from_row(cls, row: tuple[Any, ...] | None) -> RowState:
        """Restore the state that `row` returned; None before the first micro-batch."""
        if row is None:
            return cls(None, [], {})
        counter, nonce, buckets, wait, model, log, keys = row
        token = Token(int(counter), bytes(nonce), int(buckets), int(wait), str(model))
        return cls(token, json.loads(log), _unpacked(bytes(keys)))

    def row(self) -> tuple[Any, ...]:
        """Return the state as a row."""
        if self._token is None:
            raise ValueError("a bucket writes its token before its state is saved")
        return (*self._token, json.dumps(self._log), _packed(self.snapshots))

    def token(self) -> Token | None:
        """Return the token, None before the first micro-batch."""
        return self._token

    def set_token(self, token: Token) -> None:
        """Write the token."""
        self._token = token

    def log(self) -> Iterator[str]:
        """Yield what was appended since the log was cleared, in order."""
        return iter(self._log)

    def append(self, counter: int, text: str) -> None:
        """Append the rows of the micro-batch of this counter to the log."""
        self._log.append(text)

    def clear_log(self) -> None:
        """Clear the log."""
        self._log = []

    def snapshot(self, key: Key) -> bytes | None:
        """Return the bytes written for a key."""
        return self.snapshots.get(key)

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""
        self.snapshots[key] = data


def _packed(keys: dict[Key, bytes]) -> bytes:
    """Pack keys and their bytes into one string of bytes with a checksum."""
    head = json.dumps([[key, len(data)] for key, data in keys.items()], separators=(",", ":")).encode()
    body = b"".join([head, *keys.values()])
    return _HEAD.pack(zlib.crc32(body), len(head)) + body


def _unpacked(data: bytes) -> dict[Key, bytes]:
    """Unpack what _packed() returned."""
    if len(data) < _HEAD.size or zlib.crc32(data[_HEAD.size :]) != _HEAD.unpack_from(data)[0]:
        raise ModelFileError(f"the state of a bucket, {len(data):,} bytes, is damaged: its checksum differs")
    at = _HEAD.size + _HEAD.unpack_from(data)[1]
    keys = {}
    for key, size in json.loads(data[_HEAD.size : at]):
        keys[key] = data[at : at + size]
        at += size
    return keys
