"""One key's learner in a stream: what a row does to it, and the answers that go out.

A row is a line of text, made by `varifold.spark.rows`: three JSON objects, between tabs. The first holds the key ``k``
and, where there are any, the id ``i``, the order ``o``, the label ``y`` and the weight ``w``; the second the numbers of
an instance, the third its strings. A row with either is predicted, and then learned if it has a label. One without is
the label of an earlier instance. Features stay text on their way into the learner.
"""

from __future__ import annotations

import json
from collections import OrderedDict
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


Features = str | dict[str, Any]
"""An instance: JSON, or a dict where that does not do."""


def parsed(line: str) -> tuple[dict[str, Any], str]:
    """What a row says of itself, and the text of its features; that is a tab where it has none."""
    head, _, features = line.partition("\t")
    found: dict[str, Any] = json.loads(head)
    return found, features


def instance_of(text: str) -> Features:
    """The instance of such a text. JSON has no NaN and no infinity: Spark writes them as words."""
    numbers, _, words = text.partition("\t")
    if '"NaN"' in numbers or 'Infinity"' in numbers:
        given = json.loads(numbers).items()
        x = {name: float(value) if isinstance(value, str) else value for name, value in given}
        return {**x, **json.loads(words or "{}")}
    if len(words) <= 2:
        return numbers or words
    return words if len(numbers) <= 2 else f"{numbers[:-1]},{words[1:]}"


def learn(learner: VaryingClassifier, x: Features, label: Any, weight: float) -> None:
    """Learn an instance in either form."""
    if isinstance(x, str):
        learner._engine.learn_json(x, label, weight)
    else:
        learner._engine.learn_one(x, label, weight)


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
        self.waiting: OrderedDict[Any, tuple[str, float]] = OrderedDict()  # a dict is slow to give its oldest entry
        self.last: Any = None
        self.disordered = 0
        self.expired = 0
        self.unknown = 0

    # ------------------------------------------------------------------ rows

    def take(self, row: dict[str, Any], features: str, tell: Tell) -> None:
        """Predict, learn or keep what a row holds; what cannot be done with it is told, and changes nothing."""
        self._check_order(row, tell)
        try:
            if features != "\t":
                self._instance(row, features, tell)
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

    def _instance(self, row: dict[str, Any], features: str, tell: Tell) -> None:
        x, label, engine = instance_of(features), row.get("y"), self.learner._engine
        answer, shares = engine.answer_json(x) if isinstance(x, str) else engine.answer_one(x)
        tell(Answer(row["k"], row.get("i"), answer, shares, self.learner.steps, PREDICTION, None))
        if label is not None:
            learn(self.learner, x, label, row.get("w", 1.0))
        elif row.get("i") is not None:
            self._wait(row, features, tell)

    def _wait(self, row: dict[str, Any], features: str, tell: Tell) -> None:
        if self.waiting.pop(row["i"], None) is not None:
            text = f"the id {row['i']!r} waited for its label already: its earlier instance is dropped"
            self._problem(row, text, tell)
        self.waiting[row["i"]] = (features, row.get("w", 1.0))
        if len(self.waiting) > self.most:
            self.waiting.popitem(last=False)
            self.expired += 1

    def _late_label(self, row: dict[str, Any], tell: Tell) -> None:
        found = self.waiting.get(row.get("i"))
        if found is None or row.get("y") is None:
            self.unknown += 1
            missing = "no label and no features" if row.get("y") is None else "a label, but no instance of its id waits"
            self._problem(row, f"the row has {missing}", tell)
            return
        features, weight = found
        learn(self.learner, instance_of(features), row["y"], row.get("w", weight))
        del self.waiting[row["i"]]

    # ------------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """All of it."""
        more = {
            "waiting": [(number, *held) for number, held in self.waiting.items()],
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
        found.waiting.update((number, (features, weight)) for number, features, weight in more["waiting"])
        found.last = more["last"]
        found.disordered, found.expired, found.unknown = more["counts"]
        return found
