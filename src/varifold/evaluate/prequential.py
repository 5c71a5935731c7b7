"""The prequential loop: every instance is predicted first, scored, and learned when its label arrives."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from varifold.base import Block, Labels, Vocabulary, to_block
from varifold.base.blocks import with_numbers
from varifold.base.learner import is_regressor
from varifold.base.params import Integer, Real, validate
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.evaluate.delayed_labels import Delay, DelayedLabels, Schedule
from varifold.evaluate.importances import ROWS, ImportanceTracker, importances_of, tracker_of
from varifold.evaluate.metrics import Bools, Floats, Ints, Majority, Tally
from varifold.evaluate.periods import Periods, RegressionPeriods
from varifold.evaluate.predictions import Predictions, RegressionPredictions, answered, joined, joined_numbers
from varifold.evaluate.regression_metrics import RegressionTally, RunningMean
from varifold.evaluate.result import RegressionResult, Result
from varifold.evaluate.runners import Answers, regression_runner_of, runner_of
from varifold.evaluate.uncertainty import IntervalTally, SetTally
from varifold.evaluate.windows import RegressionWindows, Windows
from varifold.streams import Batch
from varifold.streams.readers.missing import is_missing, with_known_labels
from varifold.streams.stream import batches_of

_ROWS = 16_384


def prequential(
    learner: Any,
    stream: Any,
    *,
    delay: Delay = None,
    scored_from: int | None = None,
    positive: Hashable = None,
    quantile: float = 0.5,
    track: str | None = None,
    by: str | int | None = None,
    predictions: bool | Callable[[Any], None] = False,
    curve_points: int = 200,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Run a learner over a stream: predict, score, learn.

    A classifier returns a `Result`, a regressor a `RegressionResult`.

    Parameters
    ----------
    learner
        One of ours (run natively, block by block) or any river classifier or regressor (run instance by instance); it
        is changed. A river classifier of two classes only is given False and True for the first and the second label
        seen.
    stream
        A Block, an object that holds one (``streams.prepare``'s result, a data set), a `Stream` (``.blocks()``) or an
        iterable of (x, y), where a y of None, NaN or pandas' NA is a missing label. For a regressor labels must be
        numbers.
    delay
        How many instances later a label arrives: a number, the name of the feature that holds it (the learner does
        not see that feature), or a function of x and y. None there, and a missing label, mean that it never arrives.
        A prepared stream brings its own.
    scored_from
        Index of the first instance that counts; a prepared stream brings its own.
    positive
        Label whose f1 is computed, or its text. By default the less frequent of two; with more labels f1 is the mean
        over them.
    quantile
        Of a regressor: the quantile whose pinball loss is computed, between 0 and 1.
    track
        ``"importances"`` keeps the weights in ``learner.features`` (for `ORF3V`, ``learner.importances()``) at every
        point of the curve. ``"permutation"`` measures, on instances that are about to be learned, what the answers lose
        when a column's cells change places: in `Result.importances`, and along the curve; for classifiers.
    by
        ``"hour"``, ``"day"``, ``"week"``, ``"month"`` or ``"year"`` of the stream's time column, or a number of
        instances: the metrics of every such period are in `Result.periods`.
    predictions
        True keeps every answer in `Result.predictions`; a function is called with the answers of each part of the
        stream instead, and nothing is kept.
    curve_points
        Points of the curve; a stream of unknown length gets up to twice as many.
    progress
        Called repeatedly with the number of instances done.

    Examples
    --------
    >>> import varifold
    >>> stream = [({"a": float(i % 2), "b": 1.0}, i % 2) for i in range(100)]
    >>> result = varifold.evaluate.prequential(varifold.OLVF(), stream)
    >>> result.instances, result.errors, round(result.accuracy, 2)
    (100, 4, 0.96)

    """
    validate(
        "prequential",
        {"curve_points": Integer(1), "quantile": Real(0, 1)},
        {"curve_points": curve_points, "quantile": quantile},
    )
    if track not in (None, "importances", "permutation"):
        raise ParameterError(f"track must be 'importances', 'permutation' or None. Got {track!r} instead.")
    delay = getattr(stream, "delay", None) if delay is None else delay
    start = getattr(stream, "scored_from", 0) if scored_from is None else scored_from
    validate("prequential", {"scored_from": Integer(0)}, {"scored_from": start})
    numeric = is_regressor(learner)
    run: _Run
    if numeric:
        run = _RegressionRun(
            learner, DelayedLabels(delay), start, RegressionWindows(curve_points, _length(stream)), quantile
        )
    else:
        run = _LabelRun(learner, DelayedLabels(delay), start, Windows(curve_points, _length(stream)))
    run.periods = None if by is None else RegressionPeriods(by) if numeric else Periods(by)
    run.keeps = predictions is True
    run.sink = predictions if callable(predictions) else None
    tracker = tracker_of(learner) if track == "permutation" else None
    importances = importances_of(learner, track, tracker)
    for batch in _batches(stream, numeric):
        lo, n = 0, len(batch.block)
        while lo < n:
            hi = min(n, lo + (_ROWS if importances is None else run.windows.room()))
            if tracker is not None:
                tracker.measure(batch.block[lo : lo + ROWS], run.queue.clock)
            run.step(batch.part(lo, hi))
            lo = hi
            if importances is not None:
                run.windows.snapshot(importances())
            if progress is not None:
                progress(run.queue.clock)
    run.tracker = tracker
    return run.finish(positive)


class _Run(ABC):
    """The state of one evaluation, whatever is predicted."""

    def __init__(self, runner: Any, queue: DelayedLabels, scored_from: int, windows: Windows) -> None:
        self.runner = runner
        self.queue = queue
        self.scored_from = scored_from
        self.windows = windows
        self.columns = np.zeros(0, dtype=np.int32)
        self.empty = 0
        self.unlabelled = 0
        self.periods: Any = None
        self.tracker: ImportanceTracker | None = None
        self.keeps = False
        self.kept: list[Any] = []
        self.sink: Callable[[Any], None] | None = None

    def step(self, batch: Batch) -> None:
        """Predict, score and learn the next instances."""
        start = self.queue.clock
        names = None if self.periods is None else self.periods.names(batch, start)
        schedule = self.queue.schedule(batch)
        answers = self.runner.run(schedule)
        block = schedule.batch.block[len(schedule.batch.block) - schedule.new :]
        if len(self.columns) < block.vocabulary.size:
            self.columns = block.vocabulary.column_array()
        self.empty += int((np.diff(block.indptr) == 0).sum())
        self.unlabelled += int((~block.labelled).sum())
        scored = block.labelled & (np.arange(start, start + schedule.new) >= self.scored_from)
        self.score(block, schedule, answers, scored, start, names)
        if self.keeps or self.sink is not None:
            found = self.answered(batch, block, start, answers)
            self.kept += [found] if self.keeps else []
            if self.sink is not None:
                self.sink(found)

    @abstractmethod
    def score(
        self, block: Block, schedule: Schedule, answers: Any, scored: Bools, start: int, names: list[str] | None
    ) -> None:
        """Account for the answers to the new instances, of which those that are `scored` count."""

    @abstractmethod
    def answered(self, batch: Batch, block: Block, start: int, answers: Any) -> Any:
        """The answers as a record."""

    @abstractmethod
    def result(self, positive: Hashable) -> Any:
        """The result so far."""

    def finish(self, positive: Hashable) -> Any:
        """Learn the labels still to come and compute the result."""
        rest = self.queue.remaining()
        if rest is not None:
            self.runner.run(rest)
        return self.result(positive)

    def _counts(self) -> dict[str, Any]:
        """What every result says of the stream and the time it took."""
        instances, seconds = self.queue.clock, self.runner.seconds
        seen = self.windows.seen(len(self.columns))
        return {
            "instances": instances,
            "scored_from": self.scored_from,
            "unlabelled": self.unlabelled,
            "empty": self.empty,
            "names": int(seen.sum()),
            "columns": int(np.count_nonzero(np.bincount(self.columns[seen]))),
            "seconds": seconds,
            "us_per_instance": 1e6 * seconds / instances if instances else float("nan"),
            "peak_memory": _peak_memory(),
        }


class _LabelRun(_Run):
    """An evaluation of a classifier."""

    def __init__(self, learner: Any, queue: DelayedLabels, scored_from: int, windows: Windows) -> None:
        super().__init__(runner_of(learner), queue, scored_from, windows)
        self.tally = Tally()
        self.majority = Majority()
        self.counts = np.zeros(0, dtype=np.int64)
        self.labels = Labels()
        self.sets = SetTally(getattr(self.runner, "coverages", ()))

    def score(
        self, block: Block, schedule: Schedule, answers: Answers, scored: Bools, start: int, names: list[str] | None
    ) -> None:
        predicted, probabilities = answers
        codes = block.codes
        self.labels = block.labels
        known = len(self.labels)
        majority = self.majority.answers(schedule.learned, schedule.before, known)
        self.tally.add(codes[scored], predicted[scored], majority[scored], known)
        losses = np.full(schedule.new, np.nan)
        if probabilities is not None:
            rated = np.flatnonzero(scored & (predicted >= 0))
            rated = rated[self.queue.learned_before(codes[rated], start + rated)]
            losses[rated] = self.tally.rate(codes[rated], predicted[rated], probabilities[rated])
        known_then = self.sets.known_before(schedule.learned, schedule.before)
        if self.sets.coverages:
            self.sets.add(codes[scored], self.runner.held[scored], known_then[scored])
        self.windows.add(block, predicted != codes, scored, losses)
        if names is not None:
            self.periods.add(names, scored, codes, predicted, majority, losses, known)
        self.counts = np.concatenate([self.counts, np.zeros(known - len(self.counts), dtype=np.int64)])
        self.counts += np.bincount(codes[codes >= 0], minlength=known)

    def answered(self, batch: Batch, block: Block, start: int, answers: Answers) -> Predictions:
        found = answered(batch, block, start, *answers)
        if not self.sets.coverages:
            return found
        return replace(found, coverages=self.sets.coverages, sets=self.runner.held)

    def result(self, positive: Hashable) -> Result:
        labels = list(self.labels.values)
        code = _positive_code(labels, self.counts, positive)
        counts = self.tally.confusion.sum(axis=1)
        scored = int(counts.sum())
        numbers: dict[str, Any] = {**self.tally.scores(code), **self._counts()}
        return Result(
            **numbers,
            majority_share=float(counts.max()) / scored if scored else float("nan"),
            scored=scored,
            labels=labels,
            positive=None if code is None else labels[code],
            confusion=self.tally.confusion,
            curve=self.windows.curve(),
            periods=[] if self.periods is None else self.periods.results(len(labels), code),
            importances={} if self.tracker is None else self.tracker.table(),
            predictions=joined(self.kept, labels) if self.keeps else None,
            sets=self.sets.scores(),
        )


class _RegressionRun(_Run):
    """An evaluation of a regressor."""

    windows: RegressionWindows

    def __init__(
        self, learner: Any, queue: DelayedLabels, scored_from: int, windows: RegressionWindows, quantile: float
    ) -> None:
        super().__init__(regression_runner_of(learner), queue, scored_from, windows)
        self.tally = RegressionTally(quantile)
        self.mean = RunningMean()
        self.intervals = IntervalTally(getattr(self.runner, "coverages", ()))

    def score(
        self, block: Block, schedule: Schedule, answers: Floats, scored: Bools, start: int, names: list[str] | None
    ) -> None:
        targets = _targets(block)
        scored &= self.mean.count + schedule.before > 0
        mean = self.mean.answers(schedule.learned, schedule.before)
        self.tally.add(targets[scored], answers[scored], mean[scored])
        band = None
        if self.intervals.coverages:
            self.intervals.add(targets[scored], self.runner.bounds[scored])
            band = self.runner.bounds[:, -1] - answers[:, None]
        self.windows.add_errors(block, targets - answers, scored, band)
        if names is not None:
            self.periods.add(names, scored, targets - answers, targets - mean)

    def answered(self, batch: Batch, block: Block, start: int, answers: Floats) -> RegressionPredictions:
        bounds = self.runner.bounds if self.intervals.coverages else None
        return RegressionPredictions(
            start, _targets(block).copy(), answers, batch.ids, batch.times, self.intervals.coverages, bounds
        )

    def result(self, positive: Hashable) -> RegressionResult:
        numbers: dict[str, Any] = {**self.tally.scores(), **self._counts()}
        return RegressionResult(
            **numbers,
            quantile=self.tally.quantile,
            scored=self.tally.scored,
            lowest=self.tally.lowest if self.tally.scored else float("nan"),
            highest=self.tally.highest if self.tally.scored else float("nan"),
            curve=self.windows.regression_curve(),
            periods=[] if self.periods is None else self.periods.results(),
            importances={} if self.tracker is None else self.tracker.table(),
            predictions=joined_numbers(self.kept) if self.keeps else None,
            intervals=self.intervals.scores(),
        )


def _targets(block: Block) -> Floats:
    return np.full(len(block), np.nan) if block.targets is None else block.targets


def _positive_code(labels: list[Any], counts: Ints, positive: Hashable) -> int | None:
    if positive is not None:
        texts: list[Any] = [str(y) for y in labels]
        for found in (labels, texts):
            if positive in found:
                return found.index(positive)
        raise UnknownNameError(f"the positive label {positive!r} is not in the stream; it has {labels!r}")
    if len(labels) > 2 or not labels:
        return None
    return int(len(labels) - 1 - counts[::-1].argmin())


def _length(stream: Any) -> int | None:
    if not isinstance(stream, Block) and hasattr(stream, "block"):
        return len(stream.block)
    return len(stream) if isinstance(stream, Sized) and not hasattr(stream, "blocks") else None


def _batches(stream: Any, numeric: bool) -> Iterator[Batch]:
    """The stream as batches over one vocabulary, of labels or of numbers."""
    if isinstance(stream, Block):
        batches: Iterable[Batch] = [Batch(stream)]
    elif hasattr(stream, "block"):
        batches = [Batch(stream.block)]
    elif hasattr(stream, "blocks"):
        batches = batches_of(stream)
    elif isinstance(stream, Iterable):
        yield from _from_pairs(iter(stream), numeric)
        return
    else:
        raise DataError(f"cannot read a stream from {type(stream).__name__}; pass a Block, a Stream or (x, y) pairs")
    for batch in batches:
        if numeric:
            yield replace(batch, block=with_numbers(batch.block))
        elif batch.block.targets is not None:
            raise DataError(
                "the stream has numbers to predict, which a classifier cannot; take a regressor, or read it with "
                "target_type='class' (--target-type class) if every number is a class of its own"
            )
        else:
            yield batch


def _from_pairs(pairs: Iterator[Any], numeric: bool) -> Iterator[Batch]:
    vocabulary, labels = Vocabulary(), Labels()
    while some := list(islice(pairs, 1024)):
        try:
            rows, targets = (list(part) for part in zip(*some, strict=True))
        except (TypeError, ValueError):
            rows, targets = [None], []
        if not all(isinstance(x, Mapping) for x in rows):
            raise DataError("a stream given as an iterable holds pairs (x, y): a dict and its label")
        if numeric:
            yield Batch(to_block(rows, targets, vocabulary=vocabulary, numeric=True), rows=rows)
        else:
            yield Batch(_partly_labelled(rows, targets, vocabulary, labels), rows=rows)


def _partly_labelled(rows: list[Any], targets: list[Any], vocabulary: Vocabulary, labels: Labels) -> Block:
    """A block of instances, some of which may have no label (None, NaN or NA)."""
    if not any(map(is_missing, targets)):
        return Block.from_dicts(rows, targets, None, vocabulary, labels)
    return with_known_labels(Block.from_dicts(rows, None, None, vocabulary), targets, labels)


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
