"""How a learner follows a schedule: ours natively over a block, any other through its dict interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from river import base as river_base

from varifold.base import Labels
from varifold.errors import DataError, ParameterError
from varifold.evaluate.delayed_labels import Schedule
from varifold.evaluate.metrics import Bools, Floats, Ints

Answers = tuple[Ints, Floats | None]
"""For the new instances of a schedule: label codes of the stream (-1: none) and probabilities per label code."""


class Runner(Protocol):
    """Runs one classifier over schedule after schedule and adds up the time spent in it."""

    seconds: float

    def run(self, schedule: Schedule) -> Answers:
        """Predict and learn as scheduled."""


class RegressionRunner(Protocol):
    """Runs one regressor over schedule after schedule and adds up the time spent in it."""

    seconds: float

    def run(self, schedule: Schedule) -> Floats:
        """Predict and learn as scheduled; the predictions of the new instances."""


def runner_of(learner: Any) -> Runner:
    """The fastest way to run this classifier."""
    _check(learner, "classifier")
    return BlockRunner(learner) if hasattr(learner, "run_block") else DictRunner(learner)


def regression_runner_of(learner: Any) -> RegressionRunner:
    """The fastest way to run this regressor."""
    _check(learner, "regressor")
    return RegressionBlockRunner(learner) if hasattr(learner, "run_block") else RegressionDictRunner(learner)


def _check(learner: Any, kind: str) -> None:
    if isinstance(learner, type):
        raise ParameterError(f"{learner.__name__} is a class; pass a learner, {learner.__name__}()")
    if not (hasattr(learner, "learn_one") and hasattr(learner, "predict_one")):
        raise ParameterError(
            f"{type(learner).__name__} is no {kind} that learns one instance at a time: it needs learn_one(x, y) "
            "and predict_one(x)"
        )


class RegressionBlockRunner:
    """Our regressors: the whole schedule in one native call."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0
        self.coverages = coverages_of(learner, "run_intervals")
        self.bounds: Floats = np.zeros((0, 0, 2))
        """Of the last schedule's new instances, if the learner has coverages: low and high by coverage."""

    def run(self, schedule: Schedule) -> Floats:
        """Predict and learn as scheduled."""
        block = schedule.batch.block
        old = len(block) - schedule.new
        started = perf_counter()
        found: Floats
        if self.coverages:
            found, bounds = self.learner.run_intervals(block, schedule.events)
            self.bounds = bounds[old:]
        else:
            found = self.learner.run_block(block, schedule.events)
        self.seconds += perf_counter() - started
        return found[old:]


class RegressionDictRunner:
    """Any river regressor, or anything with its methods."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0

    def run(self, schedule: Schedule) -> Floats:
        """Predict and learn as scheduled; a prediction of None (river's, before the first target) counts as 0."""
        block = schedule.batch.block
        rows, targets = rows_of(schedule), block.y
        learn = learn_call(self.learner, block.weights)
        found: list[float] = []
        started = perf_counter()
        for event in events_of(schedule):
            if event < 0:
                learn(-event - 1, rows[-event - 1], targets[-event - 1])
            else:
                answer = self.learner.predict_one(rows[event - 1])
                found.append(0.0 if answer is None else float(answer))
        self.seconds += perf_counter() - started
        return np.array(found, dtype=np.float64)


def rows_of(schedule: Schedule) -> list[Mapping[Any, Any]]:
    """The instances as dicts."""
    rows = schedule.batch.rows
    return list(schedule.batch.block.rows(True)) if rows is None else rows


def events_of(schedule: Schedule) -> list[int]:
    """One number per action, in order."""
    events = schedule.events
    if events is None:
        events = np.repeat(np.arange(1, len(schedule.batch.block) + 1), 2)
        events[1::2] *= -1
    return list(events.tolist())


def learn_call(learner: Any, weights: Floats | None) -> Callable[[int, Mapping[Any, Any], Any], None]:
    """Learn one instance, with its sample weight where there are any."""
    if weights is None:
        return lambda i, x, y: learner.learn_one(x, y)
    if "w" not in inspect.signature(learner.learn_one).parameters:
        raise DataError(f"the stream has sample weights, which {type(learner).__name__} does not take")
    return lambda i, x, y: learner.learn_one(x, y, w=float(weights[i]))


class BlockRunner:
    """Our learners: the whole schedule in one native call."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0
        self.coverages = coverages_of(learner, "run_sets")
        self.held: Bools = np.zeros((0, 0, 0), dtype=bool)
        """Of the last schedule's new instances, if the learner has coverages: which labels of the stream sets hold."""

    def run(self, schedule: Schedule) -> Answers:
        """Predict and learn as scheduled."""
        block = schedule.batch.block
        started = perf_counter()
        if self.coverages:
            codes, probabilities, held = self.learner.run_sets(block, schedule.events)
        else:
            codes, probabilities = self.learner.run_block(block, schedule.events)
        self.seconds += perf_counter() - started
        old = len(block) - schedule.new
        index = {y: code for code, y in enumerate(block.labels.values)}
        ours = np.array([index.get(y, -1) for y in self.learner.classes], dtype=np.int64)
        if self.coverages:
            self.held = np.zeros((schedule.new, len(self.coverages), len(block.labels)), dtype=bool)
            self.held[:, :, ours[ours >= 0]] = held[old:][:, :, ours >= 0]
        return _translated(codes[old:], probabilities[old:], ours, len(block.labels))


def coverages_of(learner: Any, call: str) -> tuple[float, ...]:
    """The coverages of the intervals or sets that a learner gives block by block."""
    return tuple(learner.coverages) if hasattr(learner, call) else ()


def _translated(codes: Ints, probabilities: Floats, ours: Ints, labels: int) -> Answers:
    """A learner's class indices as label codes of the stream."""
    predicted = np.append(ours, -1)[codes]
    if not len(ours):
        return predicted, np.zeros((len(codes), labels))
    if labels == len(ours) and np.array_equal(ours, np.arange(labels)):
        return predicted, probabilities
    found = np.zeros((len(codes), labels))
    found[:, ours[ours >= 0]] = probabilities[:, ours >= 0]
    return predicted, found


class DictRunner:
    """Any river classifier, or anything with its methods."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds = 0.0
        self.two_labels = isinstance(learner, river_base.Estimator) and not getattr(learner, "_multiclass", True)
        self.has_learned = False
        self.gives_probabilities = hasattr(learner, "predict_proba_one")
        last = getattr(learner, "_last_step", learner)
        self.takes_largest = getattr(type(last), "predict_one", None) is river_base.Classifier.predict_one

    def run(self, schedule: Schedule) -> Answers:
        """Predict and learn as scheduled."""
        block = schedule.batch.block
        rows, events = rows_of(schedule), events_of(schedule)
        labels = self._labels(block.labels)
        targets = [labels[c] if c >= 0 else None for c in block.codes.tolist()]
        # a learner of False and True answers False before it has learned anything, which is no guess at the first label
        renamed = labels != block.labels.values
        answers, shares = self._follow(events, rows, targets, learn_call(self.learner, block.weights), renamed)
        index = {y: code for code, y in enumerate(labels)}
        predicted = np.array([index.get(y, -1) for y in answers], dtype=np.int64)
        if not self.gives_probabilities:
            return predicted, None
        found = np.zeros((len(shares), len(labels)))
        for i, share in enumerate(shares):
            for y, p in share.items():
                if y in index:
                    found[i, index[y]] = p
        return predicted, found

    def _follow(
        self,
        events: list[int],
        rows: list[Mapping[Any, Any]],
        targets: list[Any],
        learn: Callable[[int, Mapping[Any, Any], Any], None],
        renamed: bool,
    ) -> tuple[list[Any], list[dict[Any, float]]]:
        answers: list[Any] = []
        shares: list[dict[Any, float]] = []
        started = perf_counter()
        for event in events:
            if event < 0:
                learn(-event - 1, rows[-event - 1], targets[-event - 1])
                self.has_learned = True
                continue
            share = self._share(rows[event - 1])
            shares.append(share)
            answer = self._answer(rows[event - 1], share)
            answers.append(answer if self.has_learned or not renamed else None)
        self.seconds += perf_counter() - started
        return answers, shares

    def _share(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Probabilities by label; empty from a learner that has none."""
        if not self.gives_probabilities:
            return {}
        try:
            share: dict[Any, float] = self.learner.predict_proba_one(x)
        except NotImplementedError:
            self.gives_probabilities = False
            return {}
        return share

    def _answer(self, x: Mapping[Any, Any], share: dict[Any, float]) -> Any:
        """The label; read off the probabilities where the learner would do the same."""
        if self.gives_probabilities and self.takes_largest:
            return max(share, key=share.__getitem__) if share else None
        return self.learner.predict_one(x)

    def _labels(self, labels: Labels) -> list[Any]:
        """The labels as the learner sees them: False and True for a learner of two classes only."""
        values = list(labels.values)
        if not self.two_labels or all(isinstance(y, bool) for y in values):
            return values
        if len(values) > 2:
            raise DataError(
                f"{type(self.learner).__name__} tells two labels apart, the stream has {len(values)} ({values[2]!r} "
                "is the third); wrap it in river.multiclass.OneVsRestClassifier"
            )
        return [False, True][: len(values)]
