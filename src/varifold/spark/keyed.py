"""One key's learner in a stream: what a row does to it, and the answers that go out.

A row is a line of text, made by `varifold.spark.rows`: three JSON objects, between tabs. The first holds the key ``k``
and, where there are any, the id ``i``, the order ``o``, the label ``y`` and the weight ``w``; the second the numbers of
an instance, the third its strings. A row with either is predicted, and then learned if it has a label. One without is
the label of an earlier instance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from varifold.base import files, saving
from varifold.base.classifier import VaryingClassifier
from varifold.base.json_text import read_json
from varifold.errors import VarifoldError
from varifold.evaluate.label_queue import LabelQueue, Waiting

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


def parsed(line: str) -> tuple[dict[str, Any], str]:
    """What a row says of itself, and the text of its features; that is a tab where it has none."""
    head, _, features = line.partition("\t")
    found: dict[str, Any] = read_json(head)
    return found, features


def instance_of(text: str) -> dict[str, Any]:
    """Read the features of a row. JSON has no NaN and no infinity: Spark writes them as words."""
    numbers, _, words = text.partition("\t")
    x: dict[str, Any] = read_json(numbers or "{}")
    if '"NaN"' in numbers or 'Infinity"' in numbers:
        x = {name: float(value) if isinstance(value, str) else value for name, value in x.items()}
    return x if len(words) <= 2 else {**x, **read_json(words)}


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
        self.waiting = LabelQueue(most)
        self._ids: OrderedDict[Any, tuple[int, float]] = OrderedDict()  # id -> number in the queue, weight of the row
        self.last: Any = None
        self.disordered = 0
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
        answer, shares = engine.answer_one(x)
        tell(Answer(row["k"], row.get("i"), answer, shares, self.learner.steps, PREDICTION, None))
        if label is not None:
            engine.learn_one(x, label, row.get("w", 1.0))
        elif row.get("i") is not None:
            self._wait(row, features, tell)

    def _wait(self, row: dict[str, Any], features: str, tell: Tell) -> None:
        if (before := self._ids.pop(row["i"], None)) is not None:
            self.waiting.remove(before[0])
            text = f"the id {row['i']!r} waited for its label already: its earlier instance is dropped"
            self._problem(row, text, tell)
        number = self.waiting.add(Waiting(0, features.encode()))
        self._ids[row["i"]] = (number, row.get("w", 1.0))
        while next(iter(self._ids.values()))[0] <= self.waiting.expired_to:
            self._ids.popitem(last=False)

    def _late_label(self, row: dict[str, Any], tell: Tell) -> None:
        found = self._ids.get(row.get("i"))
        if found is None or row.get("y") is None:
            self.unknown += 1
            missing = "no label and no features" if row.get("y") is None else "a label, but no instance of its id waits"
            self._problem(row, f"the row has {missing}", tell)
            return
        number, weight = found
        x = instance_of(self.waiting[number].x.decode())
        self.learner._engine.learn_one(x, row["y"], row.get("w", weight))
        self.waiting.remove(number)
        del self._ids[row["i"]]

    # ------------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """Encode the learner as a model file, whose header also holds the rest under ``stream``."""
        more = {
            "queue": self.waiting.dump(),
            "ids": [(given, *known) for given, known in self._ids.items()],
            "last": self.last,
            "counts": [self.disordered, self.unknown],
        }
        return saving.encoded(self.learner, {"stream": more})

    @classmethod
    def from_bytes(cls, data: bytes, blank: VaryingClassifier, most: int) -> Keyed:
        """Restore what to_bytes() encoded, of a learner of the class of `blank`."""
        header, arrays, source = files.decode_bytes(data)
        restored = cls(saving.restored(type(blank), header, arrays, source), most)
        more = header["stream"]
        restored.waiting.fill(more["queue"])
        restored._ids.update((given, (number, weight)) for given, number, weight in more["ids"])
        restored.last = more["last"]
        restored.disordered, restored.unknown = more["counts"]
        return restored
