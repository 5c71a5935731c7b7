"""One key's learner in a stream: what a row does to it, and the answers that go out.

A row is a line of JSON, made by `varifold.spark.rows`: the key ``k``, and where there are any the id ``i``, the order
``o``, the label ``y``, the weight ``w``, the numbers ``n`` and the strings ``s``. A row with ``n`` or ``s`` is an
instance: it is predicted, and then learned if it has a label. One without either is the label of an earlier instance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from varifold.base.classifier import VaryingClassifier
from varifold.errors import VarifoldError
from varifold.spark.packed import pack, unpack

PREDICTION, PROBLEM = "prediction", "problem"


class Answer(NamedTuple):
    """One row that goes out."""

    key: Any
    id: Any
    label: Any
    probabilities: dict[Any, float] | None
    steps: int
    kind: str
    problem: str | None


Tell = Callable[[Answer], None]


def features_of(row: dict[str, Any]) -> dict[str, Any]:
    """The instance that a row holds. JSON has no NaN and no infinity: Spark writes them as words."""
    x = {name: float(v) if isinstance(v, str) else v for name, v in (row.get("n") or {}).items()}
    for name, word in (row.get("s") or {}).items():
        if word is not None:
            x[name] = word
    return x


class Keyed:
    """A key's learner, the instances that wait for their label, and what was counted.

    Parameters
    ----------
    learner
        The learner, of which nobody else has a copy.
    most
        Most instances that wait; the oldest leaves for a new one.

    """

    def __init__(self, learner: VaryingClassifier, most: int) -> None:
        self.learner = learner
        self.most = most
        self.waiting: dict[Any, str] = {}
        self.last: Any = None
        self.disordered = 0
        self.expired = 0
        self.unknown = 0

    # ------------------------------------------------------------------ rows

    def take(self, line: str, row: dict[str, Any], tell: Tell) -> None:
        """Predict, learn or keep what a row holds; what cannot be done with it is told, and changes nothing."""
        self._check_order(row, tell)
        try:
            if "n" in row or "s" in row:
                self._instance(line, row, tell)
            else:
                self._late_label(row, tell)
        except VarifoldError as error:
            self._problem(row, str(error), tell)

    def _problem(self, row: dict[str, Any], text: str, tell: Tell) -> None:
        tell(Answer(row.get("k"), row.get("i"), None, None, self.learner.steps, PROBLEM, text))

    def _check_order(self, row: dict[str, Any], tell: Tell) -> None:
        order = row.get("o")
        if order is None:
            return
        if self.last is not None and order < self.last:
            self.disordered += 1
            self._problem(row, f"out of order: {order} came after {self.last}; it was taken when it came", tell)
        else:
            self.last = order

    def _instance(self, line: str, row: dict[str, Any], tell: Tell) -> None:
        x, label = features_of(row), row.get("y")
        answer, shares = self.learner._engine.answer_one(x)
        tell(Answer(row["k"], row.get("i"), answer, shares, self.learner.steps, PREDICTION, None))
        if label is not None:
            self.learner.learn_one(x, label, row.get("w", 1.0))
        elif row.get("i") is not None:
            self._wait(line, row, tell)

    def _wait(self, line: str, row: dict[str, Any], tell: Tell) -> None:
        if self.waiting.pop(row["i"], None) is not None:
            self._problem(
                row, f"the id {row['i']!r} waited for its label already: its earlier instance is dropped", tell
            )
        self.waiting[row["i"]] = line
        if len(self.waiting) > self.most:
            del self.waiting[next(iter(self.waiting))]
            self.expired += 1

    def _late_label(self, row: dict[str, Any], tell: Tell) -> None:
        line = self.waiting.get(row.get("i"))
        if line is None or row.get("y") is None:
            self.unknown += 1
            missing = "no label and no features" if row.get("y") is None else "a label, but no instance of its id waits"
            self._problem(row, f"the row has {missing}", tell)
            return
        first = json.loads(line)
        self.learner.learn_one(features_of(first), row["y"], row.get("w", first.get("w", 1.0)))
        del self.waiting[row["i"]]

    # ------------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """All of it."""
        more = {
            "waiting": list(self.waiting.items()),
            "last": self.last,
            "counts": [self.disordered, self.expired, self.unknown],
        }
        return pack(self.learner._engine.dump(), more)

    @classmethod
    def from_bytes(cls, data: bytes, blank: VaryingClassifier, most: int) -> Keyed:
        """What to_bytes() gave, of a learner with the parameters of `blank`."""
        state, more = unpack(data)
        found = cls(blank.clone(), most)
        found.learner._engine.fill(*state)
        found.waiting = dict(more["waiting"])
        found.last = more["last"]
        found.disordered, found.expired, found.unknown = more["counts"]
        return found
