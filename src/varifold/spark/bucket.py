"""A bucket of keys: the worker keeps their learners, Spark's state keeps snapshots and a log of rows.

A bucket's state has three parts: a token, one snapshot per key, and the rows since the snapshots were written. A
micro-batch appends its rows to the log and writes a new token: two calls for all keys of a bucket, instead of one read
and one write per key. Learners are deterministic, so snapshots and log restore the learners to the bit. When the log
has many rows per key, the keys in it are written and the log is cleared.

The worker process may use the learners that it keeps only if the token in the state is the one that it wrote itself:
after a failed task, a restart or a move of the bucket to another worker, the token differs and the state is read again.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from varifold.ask import AskPolicy
from varifold.base.classifier import VaryingClassifier
from varifold.base.detector import VaryingDetector
from varifold.base.files import MISFITS
from varifold.errors import ModelFileError, ParameterError
from varifold.spark.keyed import Detection, Emit, Keyed, Output, problem
from varifold.spark.layout import Row

Key = str | int
_LONGEST_LOG = 200
"""Most micro-batches in a log."""


@dataclass(frozen=True)
class Plan:
    """Input of every worker: the learner before learning, and the limits."""

    blank: VaryingClassifier | VaryingDetector
    wait: int
    """Most instances per key that wait for their label."""
    buckets: int
    logged: int
    """Mean number of rows per key in the log at which the keys in it are written."""
    live: int
    """Most learners that a worker process keeps."""
    ask: AskPolicy | None = None
    """Policy of every key before the first row; None requests no labels."""

    @property
    def model(self) -> str:
        """Return method and parameters of the learner, and of the policy, as text."""
        policy = {} if self.ask is None else {"ask": self.ask.params}
        return json.dumps({**self.blank._header(), **policy}, sort_keys=True)


class Token(NamedTuple):
    """Micro-batch of a bucket's state, and the settings with which it was written."""

    counter: int
    nonce: bytes
    """Random, so that two workers that processed the same micro-batch cannot confuse their learners."""
    buckets: int
    wait: int
    model: str


class ReadableState(Protocol):
    """A bucket's part of Spark's state, to read."""

    def token(self) -> Token | None:
        """Return the token, None before the first micro-batch."""

    def log(self) -> Iterator[str]:
        """Yield what was appended since the log was cleared, in order."""

    def snapshot(self, key: Key) -> bytes | None:
        """Return the bytes written for a key."""


class BucketState(ReadableState, Protocol):
    """A bucket's part of Spark's state, to read and write."""

    def set_token(self, token: Token) -> None:
        """Write the token."""

    def append(self, counter: int, text: str) -> None:
        """Append the rows of the micro-batch of this counter to the log."""

    def clear_log(self) -> None:
        """Clear the log."""

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""


@dataclass
class LiveBucket:
    """A bucket's learners in this process, as of a token."""

    token: Token | None = None
    keys: dict[Key, Keyed] = field(default_factory=dict)
    broken: dict[Key, str] = field(default_factory=dict)
    changed: dict[Key, None] = field(default_factory=dict)
    """Keys with rows in the log."""
    rows: int = 0
    batches: int = 0


class Cache:
    """Buckets whose learners this process keeps; the least recently used ones are dropped first."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, int], LiveBucket] = OrderedDict()

    def pop(self, name: str, bucket: int, token: Token | None) -> LiveBucket | None:
        """Remove a bucket's learners, and return them if they are as of this token."""
        live = self._buckets.pop((name, bucket), None)
        return live if live is not None and token is not None and live.token == token else None

    def put(self, name: str, bucket: int, live: LiveBucket, most: int) -> None:
        """Keep a bucket's learners, and at most `most` of all buckets."""
        self._buckets[name, bucket] = live
        learners = sum(len(other.keys) for other in self._buckets.values())
        while learners > most and self._buckets:
            _, dropped = self._buckets.popitem(last=False)
            learners -= len(dropped.keys)


CACHE = Cache()


class Reader:
    """Restores the learners of a bucket: reads snapshots when they are needed and replays the log."""

    def __init__(self, plan: Plan, state: ReadableState) -> None:
        self.plan = plan
        self.state = state

    def learners(self, keys: Iterable[Key]) -> Iterator[tuple[Key, VaryingClassifier | VaryingDetector]]:
        """Yield the learners of these keys and of those in the log; raise an error for one that cannot be read."""
        live = self.read(self.state.token())
        for key in dict.fromkeys([*keys, *live.changed]):
            keyed = live.keys.get(key) or self._keyed(live, key)
            if keyed is None:
                raise ModelFileError(f"key {key!r}: {live.broken[key]}")
            yield key, keyed.learner

    def read(self, token: Token | None) -> LiveBucket:
        """Restore the bucket from its state."""
        live = LiveBucket(token)
        if token is not None:
            for text in self.state.log():
                live.batches += 1
                for line in text.split("\n"):  # splitlines() would also split at U+2028
                    self.process(live, Row.parse(line), _discard)
        return live

    def process(self, live: LiveBucket, row: Row, emit: Emit) -> None:
        """Pass a row to the learner of its key."""
        key = row.key
        if not isinstance(key, str | int):
            emit(problem(self.plan.blank, None, row.id, "the row has no key"))
            return
        keyed = live.keys.get(key)
        if keyed is None:
            keyed = self._keyed(live, key)
        if keyed is None:
            emit(problem(self.plan.blank, key, row.id, live.broken[key]))
            return
        keyed.process(row, emit)
        live.changed[key] = None
        live.rows += 1

    def _keyed(self, live: LiveBucket, key: Key) -> Keyed | None:
        """Restore a key's learner from its snapshot, or make a new one; return None if the snapshot cannot be read."""
        if key in live.broken:
            return None
        data = None if live.token is None else self.state.snapshot(key)
        try:
            if data is None:
                policy = None if self.plan.ask is None else self.plan.ask.clone()
                keyed = Keyed(self.plan.blank.clone(), self.plan.wait, policy)
            else:
                keyed = Keyed.from_bytes(data, self.plan.blank, self.plan.wait)
        except MISFITS as error:
            live.broken[key] = f"the state of this key cannot be read and is left as it is: {error}"
            return None
        live.keys[key] = keyed
        return keyed


class Bucket:
    """One bucket while it processes a micro-batch."""

    def __init__(self, name: str, number: int, plan: Plan, state: BucketState, cache: Cache = CACHE) -> None:
        self.name = name
        self.number = number
        self.plan = plan
        self.state = state
        self.cache = cache

    def run(self, lines: Iterable[str], emit: Emit) -> None:
        """Process the rows of one micro-batch, those of each key in their order."""
        reader = Reader(self.plan, self.state)
        token = self.state.token()
        self._check(token)
        live = self.cache.pop(self.name, self.number, token)
        if live is None:
            live = reader.read(token)
        rows = in_order(map(Row.parse, lines))
        for row in rows:
            reader.process(live, row, emit)
        self._write(live, [row.line for row in rows])
        self.cache.put(self.name, self.number, live, self.plan.live)

    def _check(self, token: Token | None) -> None:
        if token is None:
            return
        for name in ("buckets", "wait", "model"):
            written, given = getattr(token, name), getattr(self.plan, name)
            if written != given:
                raise ParameterError(
                    f"the checkpoint was written with {name}={written}. Got {given} instead, which would change its "
                    "learners: keep the value, or start with a new checkpoint"
                )

    def _write(self, live: LiveBucket, lines: list[str]) -> None:
        """Log the rows, or write the keys if the log is long; then write the token."""
        counter = live.token.counter + 1 if live.token is not None else 1
        live.batches += 1
        if live.rows >= self._limit() * max(1, len(live.changed)) or live.batches > _LONGEST_LOG:
            for key in live.changed:
                self.state.write(key, live.keys[key].to_bytes())
            if live.batches > 1:
                self.state.clear_log()
            live.changed, live.rows, live.batches = {}, 0, 0
        elif lines:
            self.state.append(counter, "\n".join(lines))
        live.token = Token(counter, os.urandom(8), self.plan.buckets, self.plan.wait, self.plan.model)
        self.state.set_token(live.token)

    def _limit(self) -> float:
        """Return the rows per key at which the log is written; it differs by bucket, to spread the writes over time."""
        return self.plan.logged * (1.0 + (self.number % 8) / 8.0)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Sort the rows of each key by their order; rows without an order keep their places."""
    by_key: dict[Any, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    for of_key in by_key.values():
        if all(row.order is not None for row in of_key):
            of_key.sort(key=lambda row: row.order)
    return [row for of_key in by_key.values() for row in of_key]


def _discard(output: Output | Detection) -> None:
    """Ignore the outputs of rows in the log: they were emitted when the rows arrived."""
