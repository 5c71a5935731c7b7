"""Prequential loop: every instance is predicted first, scored, and learned when its label arrives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from varifold.ask import AskingClassifier, AskPolicy
from varifold.base import Block, Labels, Vocabulary, to_block
from varifold.base.blocks import with_numbers
from varifold.base.learner import is_regressor
from varifold.base.params import Integer, Real, validate
from varifold.base.text_columns import warn_texts
from varifold.errors import DataError, ParameterError
from varifold.evaluate.delayed_labels import Delay, DelayedLabels
from varifold.evaluate.importances import ROWS, importances_of, tracker_of
from varifold.evaluate.periods import Periods
from varifold.evaluate.runners import runner_of
from varifold.evaluate.tasks import Classification, Collected, Regression
from varifold.evaluate.windows import Windows
from varifold.streams import Batch
from varifold.streams.stream import batches_of

_PAIRS = 1024
"""Instances of an iterable of pairs that make a batch: few, since the iterable may be slow."""


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
    ask: AskPolicy | float | None = None,
    predictions: bool | Callable[[Any], None] = False,
    curve_points: int = 200,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Run a learner over a stream: predict, score, learn.

    A classifier returns a `Result`, a regressor a `RegressionResult`.

    Parameters
    ----------
    learner
        One of ours (run in compiled code, batch by batch) or any river classifier or regressor (run instance by
        instance); it is changed. A river classifier of two classes only receives False and True for the first and the
        second label seen. String values of a block reach it as indicators ``column=level``; a learner that has an
        attribute ``takes_strings`` set to True receives the strings.
    stream
        A Block, an object that has one (a data set), a `Stream`, or an iterable of (x, y), where a y of None, NaN or
        pandas' NA is a missing label. For a regressor labels must be numbers.
    delay
        Number of instances after which a label arrives: a number, the name of the feature that has it (the learner
        does not see that feature), or a function of x and y. None, and a missing label, mean that it never arrives;
        a learner that learns from unlabelled instances (see `Traits.unlabelled`) then learns the instance without it,
        right after its prediction.
        The default is the stream's own.
    scored_from
        Index of the first instance that counts; the default is the stream's own.
    positive
        Label whose f1 is computed, or its text. By default the less frequent of two; with more labels f1 is the mean
        over them.
    quantile
        Of a regressor: the quantile whose pinball loss is computed, between 0 and 1.
    track
        ``"importances"`` keeps the weights in ``learner.features`` (for `ORF3V`, ``learner.importances()``) at every
        point of the curve. ``"permutation"`` measures, on instances that are about to be learned, how much worse
        predictions become when a column's cells are permuted: in `Result.importances`, and along the curve.
    by
        ``"hour"``, ``"day"``, ``"week"``, ``"month"`` or ``"year"`` of the stream's time column, or a number of
        instances: `Result.periods` has the metrics of every such period.
    ask
        Of a classifier: learn only the labels that a policy requests, or that the default policy does within this
        budget (a share of the instances). All labels are scored all the same; `Result.requested` has the
        estimate from the requested ones alone. The learner runs instance by instance.
    predictions
        True keeps every prediction in `Result.predictions`; a function is called with the predictions of each batch
        instead, and nothing is kept.
    curve_points
        Points of the curve; a stream of unknown length gets up to twice as many.
    progress
        Called after each batch with the number of instances done.

    Examples
    --------
    >>> import varifold
    >>> stream = [({"a": float(i % 2), "b": 1.0}, i % 2) for i in range(100)]
    >>> result = varifold.evaluate.prequential(varifold.OLVF(), stream)
    >>> result.instances, result.errors, round(result.accuracy, 2)
    (100, 5, 0.95)

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
    policy = _policy(ask, learner)
    evaluated = learner if policy is None else AskingClassifier(learner, policy)
    labels = DelayedLabels(delay, getattr(stream, "label_share", 1.0), getattr(stream, "label_seed", 0))
    run = _Run(evaluated, labels, start, Windows(curve_points, _length(stream)), quantile, by, predictions)
    tracker = tracker_of(learner) if track == "permutation" else None
    importances = importances_of(learner, track, tracker)
    for batch in _batches(stream, run.task.is_regression):
        lo, n = 0, len(batch.block)
        while lo < n:
            # importances are kept at the ends of windows; without them a batch is not cut
            hi = n if importances is None else min(n, lo + run.windows.remaining())
            if tracker is not None:
                tracker.measure(batch.block[lo : lo + ROWS], run.queue.clock)
            run.step(batch if hi - lo == n else batch.part(lo, hi))
            lo = hi
            if importances is not None:
                run.windows.snapshot(importances())
            if progress is not None:
                progress(run.queue.clock)
    result = run.finish(positive, {} if tracker is None else tracker.table())
    return result if policy is None else replace(result, requested=policy.estimate())


class _Run:
    """One evaluation: the body of the loop, and the sums that do not depend on the task."""

    def __init__(
        self,
        learner: Any,
        queue: DelayedLabels,
        scored_from: int,
        windows: Windows,
        quantile: float,
        by: str | int | None,
        predictions: bool | Callable[[Any], None],
    ) -> None:
        self.runner = runner_of(learner)
        coverages = self.runner.coverages
        self.task = Regression(coverages, quantile) if is_regressor(learner) else Classification(coverages)
        self.queue = queue
        queue.learned = frozenset(getattr(learner, "classes", ()))
        queue.learns_unlabelled = self.runner.learns_unlabelled
        self.scored_from = scored_from
        self.windows = windows
        self.columns = np.zeros(0, dtype=np.int32)
        self.empty = 0
        self.unlabelled = 0
        self.periods = None if by is None else Periods(by, self.task.new_tally)
        self.kept: list[Any] | None = None
        self.pass_on = predictions if callable(predictions) else None
        if predictions is True:
            self.kept = []
            self.pass_on = self.kept.append

    def step(self, batch: Batch) -> None:
        """Predict, score and learn the next instances."""
        start = self.queue.clock
        names = None if self.periods is None else self.periods.names(batch, start)
        schedule = self.queue.schedule(batch)
        outputs = self.runner.run(schedule)
        block = schedule.batch.block[len(schedule.batch.block) - schedule.new :]
        if len(self.columns) < block.vocabulary.size:
            self.columns = block.vocabulary.column_array()
        labelled = block.labelled
        self.empty += int((np.diff(block.indptr) == 0).sum())
        self.unlabelled += int((~labelled).sum())
        scored = labelled & (np.arange(start, start + schedule.new) >= self.scored_from)
        scores = self.task.score(block, schedule, outputs, scored)
        self.windows.add(block, scores.errors, scores.losses, scores.scored, scores.band)
        if self.periods is not None and names is not None:
            for tally, rows in self.periods.parts(names, scores.scored):
                self.task.add_to_period(tally, rows, block, outputs, scores)
        if self.pass_on is not None:
            self.pass_on(self.task.predictions(block, outputs, start=start, ids=batch.ids, times=batch.times))

    def finish(self, positive: Hashable, importances: dict[Any, Any]) -> Any:
        """Learn the labels that are still to come and compute the result."""
        rest = self.queue.remaining()
        if rest is not None:
            self.runner.run(rest)
        counts = {**self._counts(), "importances": importances}
        return self.task.result(Collected(counts, self.windows, self.periods, self.kept), positive)

    def _counts(self) -> dict[str, Any]:
        """Return the fields about the stream and the time that all results share."""
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


def _policy(ask: AskPolicy | float | None, learner: Any) -> AskPolicy | None:
    """Return a new policy for a run; None without one."""
    if ask is None:
        return None
    if is_regressor(learner):
        raise ParameterError("ask is for classifiers: it requests labels where the probabilities are close")
    if not hasattr(learner, "predict_proba_one"):
        raise ParameterError(f"ask needs a classifier with predict_proba_one(x); {type(learner).__name__} has none")
    return ask.clone() if isinstance(ask, AskPolicy) else AskPolicy(ask)


def _length(stream: Any) -> int | None:
    if not isinstance(stream, Block) and hasattr(stream, "block"):
        return len(stream.block)
    return len(stream) if isinstance(stream, Sized) and not hasattr(stream, "blocks") else None


def _batches(stream: Any, numeric: bool) -> Iterator[Batch]:
    """Yield the batches of the stream over one vocabulary, with labels or with numbers."""
    batches = batches_of(stream)
    if batches is None and (isinstance(stream, str) or hasattr(stream, "columns") or not isinstance(stream, Iterable)):
        raise DataError(
            f"cannot read a stream from {type(stream).__name__}; pass a Block, (x, y) pairs, or for files and frames "
            "varifold.streams.read(..., target=...)"
        )
    if batches is None:
        yield from _from_pairs(iter(stream), numeric)
    else:
        for batch in batches:
            if numeric:
                yield replace(batch, block=with_numbers(batch.block))
            elif batch.block.targets is None:
                yield batch
            else:
                raise DataError(
                    "the stream has numbers to predict, which a classifier cannot; use a regressor, or read it with "
                    "target_type='class' (--target-type class) if every number is a separate class"
                )


def _from_pairs(pairs: Iterator[Any], numeric: bool) -> Iterator[Batch]:
    vocabulary, labels, first = Vocabulary(), Labels(), True
    while some := list(islice(pairs, _PAIRS)):
        try:
            rows, targets = (list(part) for part in zip(*some, strict=True))
        except (TypeError, ValueError):
            rows, targets = [None], []
        if not all(isinstance(x, Mapping) for x in rows):
            raise DataError("an iterable used as a stream must contain pairs (x, y): a dict and its label")
        if first:
            warn_texts(rows, lambda _: False)
            first = False
        if numeric:
            yield Batch(to_block(rows, targets, vocabulary=vocabulary, numeric=True), rows=rows)
        else:
            yield Batch(Block.from_dicts(rows, targets, None, vocabulary, labels), rows=rows)


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
