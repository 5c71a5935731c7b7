"""Run a learner over a schedule: ours in one compiled call per batch, any other through its dict API."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from river import base as river_base

from varifold.base import Labels
from varifold.base.learner import is_regressor, learns_unlabelled
from varifold.errors import DataError, ParameterError
from varifold.evaluate.delayed_labels import Schedule
from varifold.evaluate.metrics import Floats, Ints

__all__ = ["Outputs", "Runner", "runner_of"]


class Outputs(NamedTuple):
    """Predictions for the new instances of a schedule, each made before its label was learned."""

    predicted: Any
    """Label codes of the stream (-1: none), or numbers."""
    probabilities: Floats | None = None
    """Of a classifier: instances x labels; None if the learner has none."""
    regions: Any = None
    """Of a learner with coverages: intervals (instances x coverages x 2) or sets (instances x coverages x labels)."""


class Runner(Protocol):
    """Run one learner over consecutive schedules and add up the time spent in it."""

    seconds: float
    coverages: tuple[float, ...]
    learns_unlabelled: bool

    def run(self, schedule: Schedule) -> Outputs:
        """Predict and learn by the schedule."""


def runner_of(learner: Any) -> Runner:
    """Return the fastest runner for this learner."""
    if isinstance(learner, type):
        raise ParameterError(f"{learner.__name__} is a class; pass a learner, {learner.__name__}()")
    if not (hasattr(learner, "learn_one") and hasattr(learner, "predict_one")):
        raise ParameterError(
            f"{type(learner).__name__} does not learn one instance at a time: a learner needs learn_one(x, y) and "
            "predict_one(x)"
        )
    if hasattr(learner, "run_block"):
        return BlockRunner(learner)
    return DictRegressorRunner(learner) if is_regressor(learner) else DictClassifierRunner(learner)


class BlockRunner:
    """Run our learners: the whole schedule in one compiled call.

    Labels that arrive late are learned with the memos of their predictions, see `VaryingClassifier.memo_one`.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0
        self.learns_unlabelled = learns_unlabelled(learner)
        self._regression = is_regressor(learner)
        with_regions = getattr(learner, "run_intervals" if self._regression else "run_sets", None)
        self.coverages = () if with_regions is None else tuple(learner.coverages)
        self._call: Any = with_regions if self.coverages else learner.run_block
        self._memos: list[bytes | None] | None = [] if hasattr(learner, "memo_one") else None

    def run(self, schedule: Schedule) -> Outputs:
        """Predict and learn by the schedule."""
        block = schedule.batch.block
        new = slice(len(block) - schedule.new, None)
        started = perf_counter()
        if schedule.events is None or self._memos is None:
            returned = self._call(block, schedule.events)
        else:
            memos = [*self._memos, *[None] * schedule.new]
            returned = self._call(block, schedule.events, memos)
            self._memos = [memos[i] for i in schedule.kept.tolist()]
        self.seconds += perf_counter() - started
        if not self._regression:
            return _in_codes_of_stream(Outputs(*(array[new] for array in returned)), self.learner.classes, block.labels)
        predictions, bounds = returned if self.coverages else (returned, None)
        return Outputs(predictions[new], None, None if bounds is None else bounds[new])


def _in_codes_of_stream(outputs: Outputs, classes: list[Any], labels: Labels) -> Outputs:
    """Translate a learner's class indices to the label codes of the stream."""
    code_of = {y: code for code, y in enumerate(labels.values)}
    codes = np.array([code_of.get(y, -1) for y in classes], dtype=np.int64)
    predicted = np.append(codes, -1)[outputs.predicted]
    outputs = outputs._replace(predicted=predicted)
    if outputs.regions is not None:
        outputs = outputs._replace(regions=outputs.regions.astype(bool))
    if np.array_equal(codes, np.arange(len(labels))):
        return outputs
    known = codes >= 0
    probabilities = np.zeros((len(predicted), len(labels)))
    probabilities[:, codes[known]] = np.asarray(outputs.probabilities)[:, known] if len(codes) else 0.0
    sets = outputs.regions
    if sets is not None:
        sets = np.zeros((*sets.shape[:2], len(labels)), dtype=bool)
        sets[:, :, codes[known]] = outputs.regions[:, :, known]
    return Outputs(predicted, probabilities, sets)


class _DictRunner:
    """Run a learner instance by instance."""

    coverages: tuple[float, ...] = ()

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0
        self.learns_unlabelled = learns_unlabelled(learner)


class DictRegressorRunner(_DictRunner):
    """Run any river regressor, or anything with its methods."""

    def run(self, schedule: Schedule) -> Outputs:
        """Predict and learn by the schedule; a prediction of None (river's, before the first target) counts as 0."""
        predictions: list[float] = []

        def predict(x: Mapping[Any, Any]) -> None:
            y = self.learner.predict_one(x)
            predictions.append(0.0 if y is None else float(y))

        self.seconds += _follow(schedule, schedule.batch.block.y, predict, self.learner)
        return Outputs(np.array(predictions, dtype=np.float64))


class DictClassifierRunner(_DictRunner):
    """Run any river classifier, or anything with its methods."""

    def __init__(self, learner: Any) -> None:
        super().__init__(learner)
        self.two_labels = isinstance(learner, river_base.Estimator) and not getattr(learner, "_multiclass", True)
        self.has_learned = False
        self.has_probabilities = hasattr(learner, "predict_proba_one")
        self.coverages = tuple(getattr(learner, "coverages", ())) if hasattr(learner, "predict_set_one") else ()
        last = getattr(learner, "_last_step", learner)
        # whether predict_one would compute the probabilities again
        self.predicts_most_probable = getattr(type(last), "predict_one", None) is river_base.Classifier.predict_one

    def run(self, schedule: Schedule) -> Outputs:
        """Predict and learn by the schedule."""
        block = schedule.batch.block
        labels = self._labels(block.labels)
        # a learner of False and True predicts False before it has learned anything: not a guess at the first label
        renamed = labels != block.labels.values
        predictions: list[Any] = []
        probabilities: list[dict[Any, float]] = []
        sets: list[list[set[Any]]] = []

        def predict(x: Mapping[Any, Any]) -> None:
            by_label = self._probabilities(x)
            probabilities.append(by_label)
            label = self._label(x, by_label)
            predictions.append(label if self.has_learned or not renamed else None)
            sets.append([self.learner.predict_set_one(x, coverage) for coverage in self.coverages])

        targets = [labels[code] if code >= 0 else None for code in block.codes.tolist()]
        self.seconds += _follow(schedule, targets, predict, self.learner, self._note_learned)
        code_of = {y: code for code, y in enumerate(labels)}
        predicted = np.array([code_of.get(y, -1) for y in predictions], dtype=np.int64)
        regions = None
        if self.coverages:
            held = [[[y in labels_of for y in labels] for labels_of in row] for row in sets]
            regions = np.array(held, dtype=bool).reshape(len(sets), len(self.coverages), len(labels))
        if not self.has_probabilities:
            return Outputs(predicted, None, regions)
        table = np.zeros((len(probabilities), len(labels)))
        for i, by_label in enumerate(probabilities):
            for y, p in by_label.items():
                if y in code_of:
                    table[i, code_of[y]] = p
        return Outputs(predicted, table, regions)

    def _note_learned(self) -> None:
        self.has_learned = True

    def _probabilities(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probabilities by label; none for a learner that has none."""
        if not self.has_probabilities:
            return {}
        try:
            by_label: dict[Any, float] = self.learner.predict_proba_one(x)
        except NotImplementedError:
            self.has_probabilities = False
            return {}
        return by_label

    def _label(self, x: Mapping[Any, Any], by_label: dict[Any, float]) -> Any:
        """Predict the label; from the probabilities if the learner would do the same."""
        if self.has_probabilities and self.predicts_most_probable:
            return max(by_label, key=by_label.__getitem__) if by_label else None
        return self.learner.predict_one(x)

    def _labels(self, labels: Labels) -> list[Any]:
        """Return the labels as the learner sees them: False and True for a learner of two classes only."""
        values = labels.values
        if not self.two_labels or all(isinstance(y, bool) for y in values):
            return values
        if len(values) > 2:
            raise DataError(
                f"{type(self.learner).__name__} distinguishes two labels, the stream has {len(values)} ({values[2]!r} "
                "is the third); wrap it in river.multiclass.OneVsRestClassifier"
            )
        return [False, True][: len(values)]


def _follow(
    schedule: Schedule,
    targets: list[Any],
    predict: Callable[[Mapping[Any, Any]], None],
    learner: Any,
    learned: Callable[[], None] = lambda: None,
) -> float:
    """Predict and learn instance by instance, as scheduled; return the seconds it took."""
    block = schedule.batch.block
    indicators = not getattr(learner, "takes_strings", False)
    rows = list(block.rows(indicators)) if schedule.batch.rows is None else schedule.batch.rows
    learn = _learn_call(learner, block.weights)
    events = _events_of(schedule)
    n = len(rows)
    started = perf_counter()
    for event in events:
        if event < -n:
            learn(-event - 1 - n, rows[-event - 1 - n], None)
        elif event < 0:
            learn(-event - 1, rows[-event - 1], targets[-event - 1])
            learned()
        else:
            predict(rows[event - 1])
    return perf_counter() - started


def _events_of(schedule: Schedule) -> list[int]:
    """Return one number per action, in order."""
    events: Ints | None = schedule.events
    if events is None:
        events = np.repeat(np.arange(1, len(schedule.batch.block) + 1), 2)
        events[1::2] *= -1
    return list(events.tolist())


def _learn_call(learner: Any, weights: Floats | None) -> Callable[[int, Mapping[Any, Any], Any], None]:
    """Return a function that learns one instance, with its sample weight if there are weights."""
    if weights is None:
        return lambda i, x, y: learner.learn_one(x, y)
    if "w" not in inspect.signature(learner.learn_one).parameters:
        raise DataError(f"the stream has sample weights, which {type(learner).__name__} does not accept")
    return lambda i, x, y: learner.learn_one(x, y, w=float(weights[i]))
