"""A bucket of keys: their learners live in the worker, and a snapshot with a log of rows in Spark's state.

A bucket's state has three parts: a token, one snapshot per key, and the rows since the snapshots were written. A
micro-batch adds its rows to the log and writes a new token: two calls for all keys of a bucket, instead of one read and
one write per key. Learners are deterministic, so the snapshots and the log give back the learners to the bit. When the
log holds many rows per key, the keys in it are written and the log is cleared.

The worker process keeps the learners. It may use them only if the token in the state is the one that it wrote there
itself: after a failed task, a restart, or a bucket that moved to another worker, the token differs and all is read
again.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from varifold.base.classifier import VaryingClassifier
from varifold.base.files import MISFITS
from varifold.errors import ModelFileError, ParameterError
from varifold.spark.keyed import PROBLEM, Answer, Keyed, Tell

Key = str | int
_LONGEST_LOG = 200
"""Micro-batches in a log, at most."""


@dataclass(frozen=True)
class Plan:
    """What every worker knows: the learner before learning, and the limits."""

    blank: VaryingClassifier
    wait: int
    """Most instances per key that wait for their label."""
    buckets: int
    logged: int
    """Rows per key in the log, on average, at which the keys in it are written."""
    live: int
    """Most learners that a worker process keeps."""

    @property
    def model(self) -> str:
        """Method and parameters as text."""
        return json.dumps(self.blank._header(), sort_keys=True)


class Token(NamedTuple):
    """Which micro-batch a bucket's state is of, and for what it was written."""

    counter: int
    nonce: bytes
    """Random, so that two workers that both processed a micro-batch cannot take each other's learners for theirs."""
    buckets: int
    wait: int
    model: str


class Held(Protocol):
    """A bucket's part of Spark's state, to be read."""

    def token(self) -> Token | None:
        """The token, None before the first micro-batch."""

    def log(self) -> Iterator[str]:
        """What was appended since the log was cleared, in order."""

    def snapshot(self, key: Key) -> bytes | None:
        """The bytes written for a key."""


class Store(Held, Protocol):
    """A bucket's part of Spark's state."""

    def set_token(self, token: Token) -> None:
        """Write the token."""

    def append(self, counter: int, text: str) -> None:
        """Add to the log the rows of the micro-batch of this counter."""

    def clear_log(self) -> None:
        """Empty the log."""

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""


@dataclass
class Live:
    """A bucket's learners in this process, as of a token."""

    token: Token | None = None
    keys: dict[Key, Keyed] = field(default_factory=dict)
    broken: dict[Key, str] = field(default_factory=dict)
    changed: dict[Key, None] = field(default_factory=dict)
    """Keys with rows in the log."""
    rows: int = 0
    batches: int = 0


class Kept:
    """The buckets whose learners this process keeps; those that were not used for longest go first."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, int], Live] = OrderedDict()

    def pop(self, name: str, bucket: int, token: Token | None) -> Live | None:
        """A bucket's learners if they are as of this token; kept again only by put()."""
        found = self._buckets.pop((name, bucket), None)
        return found if found is not None and token is not None and found.token == token else None

    def put(self, name: str, bucket: int, live: Live, most: int) -> None:
        """Keep a bucket's learners, and no more than `most` of all buckets."""
        self._buckets[name, bucket] = live
        held = sum(len(other.keys) for other in self._buckets.values())
        while held > most and self._buckets:
            _, gone = self._buckets.popitem(last=False)
            held -= len(gone.keys)


KEPT = Kept()


class Reader:
    """Learners of a bucket from its state: snapshots are read when they are needed, the log is gone through again."""

    def __init__(self, plan: Plan, held: Held) -> None:
        self.plan = plan
        self.held = held

    def learners(self, keys: Iterable[Key]) -> Iterator[tuple[Key, VaryingClassifier]]:
        """The learners of these keys and of those in the log, as of the state; one that cannot be read is an error."""
        live = self.read(self.held.token())
        for key in dict.fromkeys([*keys, *live.changed]):
            keyed = live.keys.get(key) or self._keyed(live, key)
            if keyed is None:
                raise ModelFileError(f"key {key!r}: {live.broken[key]}")
            yield key, keyed.learner

    def read(self, token: Token | None) -> Live:
        """The bucket as of the state."""
        live = Live(token)
        if token is not None:
            for text in self.held.log():
                live.batches += 1
                for line in text.split("\n"):  # splitlines() would also split at U+2028
                    self.take(live, line, json.loads(line), _discard)
        return live

    def take(self, live: Live, line: str, row: dict[str, object], tell: Tell) -> None:
        """Give a row to the learner of its key."""
        key = row.get("k")
        if not isinstance(key, str | int):
            tell(Answer(None, row.get("i"), None, None, 0, PROBLEM, "the row has no key"))
            return
        keyed = live.keys.get(key)
        if keyed is None:
            keyed = self._keyed(live, key)
        if keyed is None:
            tell(Answer(key, row.get("i"), None, None, 0, PROBLEM, live.broken[key]))
            return
        keyed.take(line, row, tell)
        live.changed[key] = None
        live.rows += 1

    def _keyed(self, live: Live, key: Key) -> Keyed | None:
        """A key's learner from its snapshot, or a new one; None where the snapshot cannot be read."""
        data = self.held.snapshot(key) if live.token is not None and key not in live.broken else None
        try:
            if key in live.broken:
                return None
            if data is None:
                found = Keyed(self.plan.blank.clone(), self.plan.wait)
            else:
                found = Keyed.from_bytes(data, self.plan.blank, self.plan.wait)
        except MISFITS as error:
            live.broken[key] = f"the state of this key cannot be read and is left as it is: {error}"
            return None
        live.keys[key] = found
        return found


class Bucket(Reader):
    """One bucket while it processes a micro-batch."""

    def __init__(self, name: str, number: int, plan: Plan, store: Store, kept: Kept = KEPT) -> None:
        super().__init__(plan, store)
        self.name = name
        self.number = number
        self.store = store
        self.kept = kept

    def run(self, lines: Iterable[str], tell: Tell) -> None:
        """Process the rows of one micro-batch, each key's in their order."""
        token = self.store.token()
        self._check(token)
        live = self.kept.pop(self.name, self.number, token)
        if live is None:
            live = self.read(token)
        ordered = in_order(lines)
        for line, row in ordered:
            self.take(live, line, row, tell)
        self._write(live, [line for line, _ in ordered])
        self.kept.put(self.name, self.number, live, self.plan.live)

    def _check(self, token: Token | None) -> None:
        if token is None:
            return
        for name in ("buckets", "wait", "model"):
            written, given = getattr(token, name), getattr(self.plan, name)
            if written != given:
                raise ParameterError(
                    f"the checkpoint was written with {name}={written}. Got {given} instead; its learners would not be "
                    "what they were: keep the value, or start with a new checkpoint"
                )

    # ------------------------------------------------------------------ writing

    def _write(self, live: Live, lines: list[str]) -> None:
        """Log the rows, or write the keys when the log is long; then the token."""
        counter = live.token.counter + 1 if live.token is not None else 1
        live.batches += 1
        if live.rows >= self._limit() * max(1, len(live.changed)) or live.batches > _LONGEST_LOG:
            for key in live.changed:
                self.store.write(key, live.keys[key].to_bytes())
            if live.batches > 1:
                self.store.clear_log()
            live.changed, live.rows, live.batches = {}, 0, 0
        elif lines:
            self.store.append(counter, "\n".join(lines))
        live.token = Token(counter, os.urandom(8), self.plan.buckets, self.plan.wait, self.plan.model)
        self.store.set_token(live.token)

    def _limit(self) -> float:
        """Rows per key in the log; not the same for all buckets, which would else all be written in one micro-batch."""
        return self.plan.logged * (1.0 + (self.number % 8) / 8.0)


def in_order(lines: Iterable[str]) -> list[tuple[str, dict[str, object]]]:
    """Rows, each key's in their order; rows without an order stay where they are."""
    by_key: dict[object, list[tuple[str, dict[str, object]]]] = {}
    for line in lines:
        row = json.loads(line)
        by_key.setdefault(row.get("k"), []).append((line, row))
    for rows in by_key.values():
        if all("o" in row for _, row in rows):
            rows.sort(key=lambda pair: pair[1]["o"])  # type: ignore[arg-type, return-value]
    return [pair for rows in by_key.values() for pair in rows]


def _discard(answer: Answer) -> None:
    """Rows of the log were answered when they came."""
