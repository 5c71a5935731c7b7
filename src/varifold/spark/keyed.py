"""One key's learner in a stream: what a row does to it, and the outputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from varifold.ask import AskPolicy
from varifold.base import files, saving
from varifold.base.classifier import VaryingClassifier
from varifold.base.detector import VaryingDetector
from varifold.base.learner import is_detector
from varifold.errors import VarifoldError
from varifold.evaluate.label_queue import LabelQueue, Waiting
from varifold.spark.layout import Row

__all__ = ["PREDICTION", "PROBLEM", "Detection", "Emit", "Keyed", "Output", "problem"]

PREDICTION, PROBLEM = "prediction", "problem"


class Output(NamedTuple):
    """One row of the stream that `learn_stream` returns."""

    key: Any
    id: Any
    label: Any
    probabilities: dict[Any, float] | None
    steps: int
    kind: str
    problem: str | None
    ask: bool | None = None
    """Of an instance that waits for its label, with a policy: whether the label is worth its price."""
    drawn: float | None = None
    """The probability with which it was drawn whatever its label is worth; 0 if it was not drawn."""


class Detection(NamedTuple):
    """One row of the stream that `learn_stream` returns for a detector."""

    key: Any
    id: Any
    score: float | None
    p_value: float | None
    anomaly: bool | None
    steps: int
    kind: str
    problem: str | None


Emit = Callable[[Output | Detection], None]


def problem(learner: Any, key: Any, identity: Any, text: str, steps: int = 0) -> Output | Detection:
    """Return the output for a row that changed nothing, in the form of the learner's outputs."""
    if is_detector(learner):
        return Detection(key, identity, None, None, None, steps, PROBLEM, text)
    return Output(key, identity, None, None, steps, PROBLEM, text)


class Keyed:
    """A key's learner, the instances that wait for their label, and counts of problems.

    Parameters
    ----------
    learner
        The learner, of which nobody else has a copy.
    most
        Most instances that wait; the oldest is dropped for a new one.
    policy
        Decides which labels of waiting instances are requested; None requests none.

    """

    def __init__(
        self, learner: VaryingClassifier | VaryingDetector, most: int, policy: AskPolicy | None = None
    ) -> None:
        self.learner = learner
        self.policy = policy
        self.waiting = LabelQueue(most)
        self._numbers: OrderedDict[Any, int] = OrderedDict()  # id -> number in the queue
        self.last: Any = None
        self.disordered = 0
        self.unknown = 0

    # ------------------------------------------------------------------ rows

    def process(self, row: Row, emit: Emit) -> None:
        """Predict, learn or keep a row; a problem with it is emitted and changes nothing."""
        self._check_order(row, emit)
        try:
            if row.x is not None:
                self._process_instance(row, row.x, emit)
            else:
                self._process_label(row, emit)
        except VarifoldError as error:
            self._problem(row, str(error), emit)

    def _problem(self, row: Row, text: str, emit: Emit) -> None:
        emit(problem(self.learner, row.key, row.id, text, self.learner.steps))

    def _check_order(self, row: Row, emit: Emit) -> None:
        if row.order is None:
            return
        if self.last is not None and row.order < self.last:
            self.disordered += 1
            self._problem(row, f"out of order: {row.order} came after {self.last}; it was processed on arrival", emit)
        else:
            self.last = row.order

    def _process_instance(self, row: Row, x: dict[str, Any], emit: Emit) -> None:
        if isinstance(self.learner, VaryingDetector):
            self._detect(self.learner, row, x, emit)
            return
        engine = self.learner._engine
        label, probabilities = engine.predict_with_proba_one(x)
        waits = row.label is None and row.id is not None
        asked = None if self.policy is None or not waits else self.policy.decide(x, probabilities)
        request = () if asked is None else (asked.ask, asked.drawn)
        emit(Output(row.key, row.id, label, probabilities, self.learner.steps, PREDICTION, None, *request))
        if row.label is not None:
            engine.learn_one(x, row.label, _weight(row))
        elif waits:
            self._wait(row, emit)

    def _detect(self, detector: VaryingDetector, row: Row, x: dict[str, Any], emit: Emit) -> None:
        """Score an instance, then learn it."""
        score, p = detector.score_and_p_value_one(x)
        output = Detection(row.key, row.id, score, p, p <= detector.rate, detector.steps, PREDICTION, None)
        detector.learn_one(x)
        emit(output)

    def _wait(self, row: Row, emit: Emit) -> None:
        """Keep an instance until its label arrives."""
        if (earlier := self._numbers.pop(row.id, None)) is not None:
            self.waiting.remove(earlier)
            self._problem(row, f"the id {row.id!r} already waits for its label: its earlier instance is dropped", emit)
        self._numbers[row.id] = self.waiting.add(Waiting(0, row.line.encode()))
        while next(iter(self._numbers.values())) <= self.waiting.expired_to:
            self._numbers.popitem(last=False)

    def _process_label(self, row: Row, emit: Emit) -> None:
        number = self._numbers.get(row.id)
        if number is None or row.label is None:
            self.unknown += 1
            missing = "no label and no features" if row.label is None else "a label, but no instance of its id waits"
            missing = "no features" if is_detector(self.learner) else missing
            self._problem(row, f"the row has {missing}", emit)
            return
        instance = Row.parse(self.waiting[number].x.decode())
        weight = _weight(instance) if row.weight is None else row.weight
        self.learner._engine.learn_one(instance.x or {}, row.label, weight)
        self.waiting.remove(number)
        del self._numbers[row.id]

    # ------------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """Encode the learner as a model file, whose header also has the rest under ``stream``."""
        more = {
            "queue": self.waiting.dump(),
            "ids": list(self._numbers.items()),
            "last": self.last,
            "counts": [self.disordered, self.unknown],
            "policy": None if self.policy is None else self.policy.dump(),
        }
        return saving.encoded(self.learner, {"stream": more})

    @classmethod
    def from_bytes(cls, data: bytes, blank: VaryingClassifier | VaryingDetector, most: int) -> Keyed:
        """Restore what to_bytes() encoded, of a learner of the class of `blank`."""
        header, arrays, source = files.decode_bytes(data)
        restored = cls(saving.restored(type(blank), header, arrays, source), most)
        more = header["stream"]
        restored.waiting.fill(more["queue"])
        restored._numbers.update((identity, number) for identity, number in more["ids"])
        restored.last = more["last"]
        restored.disordered, restored.unknown = more["counts"]
        restored.policy = None if more["policy"] is None else AskPolicy.load(more["policy"])
        return restored


def _weight(row: Row) -> float:
    return 1.0 if row.weight is None else row.weight
