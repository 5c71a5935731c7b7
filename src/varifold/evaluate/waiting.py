"""Instances that wait for a label which comes by number, whenever it comes; bounded by count and age."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal, NamedTuple

from varifold.base.files import pack_label, unpack_label

Fate = Literal["unknown", "waiting", "labelled", "expired"]


class Waiting(NamedTuple):
    """One instance as it was predicted: when (milliseconds), its features as JSON, and the answer that was given."""

    time: int
    x: bytes
    answer: Any


class WaitingInstances:
    """Numbers 1, 2, 3, ... in order of arrival; the oldest go first when there are too many or they are too old.

    Only the waiting ones are held, so that memory is bounded. Of any other number it is still known what became of
    it: beyond `last` it was never given, above `expired_to` it has its label, below that the limits have passed it.
    """

    def __init__(self, most: int, oldest_ms: int) -> None:
        self.most = most
        self.oldest_ms = oldest_ms
        self.last = 0
        self.expired_to = 0
        self.expired = 0
        self._held: OrderedDict[int, Waiting] = OrderedDict()  # a dict would be slow to give its oldest entry

    def __len__(self) -> int:
        return len(self._held)

    def add(self, instance: Waiting) -> int:
        """Keep an instance; returns its number."""
        self.last += 1
        self._held[self.last] = instance
        self.expire(instance.time)
        return self.last

    def __getitem__(self, number: int) -> Waiting:
        return self._held[number]

    def get(self, number: int, now: int = 0) -> Waiting | None:
        """The instance, if it waits and is not too old at the time given."""
        found = self._held.get(number)
        return None if found is None or now - found.time > self.oldest_ms else found

    def remove(self, number: int) -> None:
        """The label came."""
        del self._held[number]

    def fate(self, number: int) -> Fate:
        """What became of an instance."""
        if number in self._held:
            return "waiting"
        if not 1 <= number <= self.last:
            return "unknown"
        return "labelled" if number > self.expired_to else "expired"

    def expire(self, now: int) -> None:
        """Drop what is beyond the limits."""
        while self._held:
            number = next(iter(self._held))
            if len(self._held) <= self.most and now - self._held[number].time <= self.oldest_ms:
                return
            del self._held[number]
            self.expired_to = number
            self.expired += 1

    def dump(self) -> dict[str, Any]:
        """All of it as JSON."""
        held = [[k, v.time, v.x.decode(), _packed(v.answer)] for k, v in self._held.items()]
        return {"last": self.last, "expired_to": self.expired_to, "expired": self.expired, "held": held}

    def fill(self, found: dict[str, Any]) -> None:
        """Take what dump() gave."""
        self.last, self.expired_to, self.expired = found["last"], found["expired_to"], found["expired"]
        self._held = OrderedDict(
            (k, Waiting(time, x.encode(), unpack_label(answer))) for k, time, x, answer in found["held"]
        )


def _packed(answer: Any) -> Any:
    """An answer as JSON that keeps its type; None before any label is known."""
    return None if answer is None else pack_label(answer)
