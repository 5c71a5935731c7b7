"""Queue of instances that were predicted and wait for their label, bounded by count, age and size.

For the server, `follow` and the MQTT bridge a label arrives with the number of its instance, at any time. Evaluation
knows when it arrives: the instance is added with the time at which it is due.
"""

from __future__ import annotations

import bisect
import math
from collections import OrderedDict
from typing import Any, Literal, NamedTuple

from varifold.base.files import pack_label, unpack_label

Status = Literal["unknown", "waiting", "labelled", "expired"]


class Waiting(NamedTuple):
    """An instance that was predicted.

    It has the time of its prediction (the server: milliseconds; evaluation: instances), its features as JSON, the
    prediction, the time at which its label arrives, if that is known, and what a policy decided about its label.
    """

    time: int
    x: bytes = b""
    prediction: Any = None
    due: float = math.inf
    asked: list[Any] | None = None
    """As JSON; None without a policy."""


class LabelQueue:
    """Waiting instances, numbered 1, 2, 3, ... by arrival; the oldest expire if they are too many or too old.

    Only waiting instances are kept, so that memory is bounded. The status of any other number is still known: beyond
    `last` it was never used, above `expired_to` the instance has its label, below that it has expired.
    """

    def __init__(self, most: float = math.inf, oldest: float = math.inf, most_bytes: float = math.inf) -> None:
        self.most = most
        self.oldest = oldest
        self.most_bytes = most_bytes
        self.bytes = 0
        """Bytes of the features of all waiting instances."""
        self._limited = min(most, oldest, most_bytes) < math.inf
        self.last = 0
        self.expired_to = 0
        self.expired = 0
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()  # a dict is slow to remove its oldest entry
        self._due: list[tuple[float, int]] = []  # (time at which the label arrives, number)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, instance: Waiting) -> int:
        """Add an instance; return its number."""
        self.last += 1
        self._waiting[self.last] = instance
        self.bytes += len(instance.x)
        if instance.due < math.inf:
            self._due.append((instance.due, self.last))
        if self._limited:
            self.expire(instance.time)
        return self.last

    def take_due(self, now: float) -> list[tuple[float, int]]:
        """Remove the instances whose label arrives before a time; return (when, number) in the order of the labels."""
        self._due.sort()  # nearly sorted already: a heap would be slower
        ready = bisect.bisect_left(self._due, (now,))
        taken, self._due = self._due[:ready], self._due[ready:]
        return [(due, number) for due, number in taken if self.remove(number)]  # else it expired

    def remove(self, number: int) -> bool:
        """Remove an instance, such as one whose label has arrived; return False if there is none."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            self.bytes -= len(waiting.x)
        return waiting is not None

    def __getitem__(self, number: int) -> Waiting:
        return self._waiting[number]

    def get(self, number: int, now: int = 0) -> Waiting | None:
        """Return the instance if it waits and is not too old at this time."""
        instance = self._waiting.get(number)
        return None if instance is None or now - instance.time > self.oldest else instance

    def status(self, number: int) -> Status:
        """Return the status of an instance."""
        if number in self._waiting:
            return "waiting"
        if not 1 <= number <= self.last:
            return "unknown"
        return "labelled" if number > self.expired_to else "expired"

    def expire(self, now: int) -> None:
        """Remove the instances beyond the limits."""
        while self._waiting:
            number = next(iter(self._waiting))
            fits = len(self._waiting) <= self.most and self.bytes <= self.most_bytes
            if fits and now - self._waiting[number].time <= self.oldest:
                return
            self.remove(number)
            self.expired_to = number
            self.expired += 1

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON."""
        waiting = [[k, v.time, v.x.decode(), pack_prediction(v.prediction), v.asked] for k, v in self._waiting.items()]
        return {"last": self.last, "expired_to": self.expired_to, "expired": self.expired, "waiting": waiting}

    def fill(self, state: dict[str, Any]) -> None:
        """Restore the state that dump() returned."""
        self.last, self.expired_to, self.expired = state["last"], state["expired_to"], state["expired"]
        self._waiting = OrderedDict(
            (k, Waiting(time, x.encode(), unpack_label(prediction), asked=asked))
            for k, time, x, prediction, asked in state["waiting"]
        )
        self.bytes = sum(len(one.x) for one in self._waiting.values())


def pack_prediction(prediction: Any) -> Any:
    """Encode a prediction as JSON that keeps its type; None before any label is known."""
    return None if prediction is None else pack_label(prediction)
