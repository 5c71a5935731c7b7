"""PerKey, PerKeyRegressor, PerKeyDetector: one learner per value of a field, such as a device, in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import base as river_base

from varifold.base import Block, frames
from varifold.base.coverages import Interval
from varifold.base.learner import is_detector, is_regressor
from varifold.base.text_columns import warn_texts
from varifold.ensemble._keyed import KeyedLearner, KeyedPredictor, exclusive, instances
from varifold.ensemble._spill_file import Key
from varifold.errors import DataError, ParameterError

__all__ = ["Key", "KeyedLearner", "PerKey", "PerKeyDetector", "PerKeyRegressor", "by_key"]


class PerKey(KeyedPredictor, river_base.Classifier):  # type: ignore[misc]
    """One classifier per value of a field; each sees only the instances of its key, without the field.

    A learner is made when its key is first learned. Beyond a bound the least recently used ones are kept on disk, in
    a temporary file that ends with the process, and are loaded when their key appears again; predictions do not depend
    on where they are. `save` writes all of them to one file. When the disk is full, the call raises OSError and nothing
    is learned or lost.

    Parameters
    ----------
    model
        A learner that is cloned, without its state, for each key, or a specification, such as ``"arow:r=1"``.
    key
        The field that holds the key, a str or an int.
    most
        Most learners in memory; the others are on disk.
    max_keys
        Most keys; beyond that, the learner of the key that learned nothing for longest is forgotten. By default none
        is: a device that comes back finds its learner.

    Examples
    --------
    >>> from varifold import AROW, PerKey
    >>> model = PerKey(AROW(), key="device")
    >>> for step in range(20):
    ...     model.learn_one({"device": "a", "load": step % 2}, "high" if step % 2 else "low")
    ...     model.learn_one({"device": "b", "load": step % 2}, "low" if step % 2 else "high")
    >>> [model.predict_one({"device": d, "load": 1}) for d in ("a", "b")]
    ['high', 'low']
    >>> model.keys
    ['a', 'b']

    """

    _method = "perkey"
    _task = "classification"

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probability of each label; empty before the key was learned. Changes nothing."""
        learner, rest = self._for(x)
        probabilities: dict[Any, float] = learner.predict_proba_one(rest)
        return probabilities

    def predict_set_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> set[Any]:
        """Predict a set of labels with the learner of the key, which needs `coverages`. Changes nothing."""
        learner, rest = self._for(x)
        labels: set[Any] = learner.predict_set_one(rest, coverage)
        return labels

    def predict_set_many(self, X: Any, coverage: float = 0.9) -> Any:
        """Return what `predict_set_one` returns for each instance: a frame of bools by label, or a list of sets."""
        frames.check_columns(self.classes, X)
        sets = [self.predict_set_one(x, coverage) for x in instances(X)]
        held = np.array([[y in some for y in self.classes] for some in sets], dtype=bool)
        return frames.set_table(self.classes, held.reshape(len(sets), len(self.classes)), X)

    def explain_one(self, x: Mapping[Any, Any], label: Hashable = None) -> dict[Any, float]:
        """Return the contribution of each feature to a label's score in the learner of the key."""
        learner, rest = self._for(x)
        parts: dict[Any, float] = learner.explain_one(rest, label)
        return parts

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predict and learn a block, for evaluation; return indices into `classes` (-1: none yet) and probabilities.

        A schedule models labels that arrive late, see `VaryingClassifier.run_block`.
        """
        codes, probabilities, _ = self._run(block, schedule, (), memos)
        return codes, probabilities

    def run_sets(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Run `run_block` and also return the sets predicted before learning, as bools: rows x coverages x labels."""
        return self._run(block, schedule, self.coverages, memos)

    def _run(
        self,
        block: Block,
        schedule: np.ndarray[Any, Any] | None,
        coverages: tuple[float, ...],
        memos: list[bytes | None] | None,
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        rows, n = list(block.rows()), len(block)
        predictions: list[Any] = [None] * n
        shares: list[dict[Any, float]] = [{}] * n
        sets: list[list[set[Any]]] = [[]] * n

        def predict(i: int) -> None:
            predictions[i], shares[i] = self.predict_one(rows[i]), self.predict_proba_one(rows[i])
            sets[i] = [self.predict_set_one(rows[i], coverage) for coverage in coverages]

        self._run_rows(block, schedule, block.y, predict, memos)
        index = {y: k for k, y in enumerate(self._labels)}
        codes = np.array([index.get(y, -1) for y in predictions], dtype=np.int32)
        probabilities = np.zeros((n, max(1, len(index))))
        held = np.zeros((n, len(coverages), len(index)), dtype=bool)
        for i, share in enumerate(shares):
            for y, p in share.items():
                probabilities[i, index[y]] = p
            for place, some in enumerate(sets[i]):
                held[i, place, [index[y] for y in some]] = True
        return codes, probabilities, held

    @property
    def classes(self) -> list[Any]:
        """Labels of all learners, in the order in which they were first learned."""
        return list(self._labels)

    @property
    def _multiclass(self) -> bool:
        return True


class PerKeyRegressor(KeyedPredictor, river_base.Regressor):
    """One regressor per value of a field; each sees only the instances of its key, without the field.

    Like `PerKey`, for regression.

    Parameters
    ----------
    model
        A regressor that is cloned, without its state, for each key, or a specification, such as
        ``"arowregressor:r=1"``.
    key
        The field that holds the key, a str or an int.
    most
        Most learners in memory; the others are on disk.
    max_keys
        Most keys; beyond that, the learner of the key that learned nothing for longest is forgotten. By default none
        is: a device that comes back finds its learner.

    Examples
    --------
    >>> from varifold import AROWRegressor, PerKeyRegressor
    >>> model = PerKeyRegressor(AROWRegressor(), key="device")
    >>> for step in range(200):
    ...     model.learn_one({"device": "a", "load": step % 10}, 2.0 * (step % 10))
    ...     model.learn_one({"device": "b", "load": step % 10}, 50.0 - (step % 10))
    >>> [round(model.predict_one({"device": d, "load": 6})) for d in ("a", "b")]
    [12, 44]

    """

    _method = "perkeyregressor"
    _task = "regression"
    _numeric = True

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> Interval:
        """Predict an interval for the target with the learner of the key, which needs `coverages`. Changes nothing."""
        learner, rest = self._for(x)
        interval: Interval = learner.predict_interval_one(rest, coverage)
        return interval

    def predict_interval_many(self, X: Any, coverage: float = 0.9) -> Any:
        """Return what `predict_interval_one` returns for each instance: a frame of low and high, or a list."""
        intervals = [self.predict_interval_one(x, coverage) for x in instances(X)]
        return frames.interval_table(np.array(intervals, dtype=np.float64).reshape(len(intervals), 2), X)

    def explain_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the contribution of each feature to the prediction of the learner of the key."""
        learner, rest = self._for(x)
        parts: dict[Any, float] = learner.explain_one(rest)
        return parts

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> np.ndarray[Any, Any]:
        """Predict and learn a block, for evaluation; return one prediction per row, NaN for rows not predicted.

        A schedule models targets that arrive late, see `VaryingRegressor.run_block`.
        """
        predictions, _ = self._run(block, schedule, (), memos)
        return predictions

    def run_intervals(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Run `run_block` and also return the intervals predicted before learning: rows x coverages x (low, high)."""
        return self._run(block, schedule, self.coverages, memos)

    def _run(
        self,
        block: Block,
        schedule: np.ndarray[Any, Any] | None,
        coverages: tuple[float, ...],
        memos: list[bytes | None] | None,
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        rows = list(block.rows())
        predictions, bounds = np.full(len(block), np.nan), np.full((len(block), len(coverages), 2), np.nan)

        def predict(i: int) -> None:
            predictions[i] = self.predict_one(rows[i])
            for place, coverage in enumerate(coverages):
                bounds[i, place] = self.predict_interval_one(rows[i], coverage)

        self._run_rows(block, schedule, self._targets(block), predict, memos)
        return predictions, bounds


class PerKeyDetector(KeyedLearner, river_base.AnomalyDetector):
    """One anomaly detector per value of a field; see `PerKey`.

    What is unusual for one device may be usual for another. The p-values are those of the key's own detector.

    Parameters
    ----------
    model
        A detector that is cloned, without its state, for each key, or a specification, such as ``"taildetector"``.
    key
        The field that holds the key, a str or an int.
    most
        Most detectors in memory; the others are on disk.
    max_keys
        Most keys, see `PerKey`.

    Examples
    --------
    >>> from varifold import PerKeyDetector, TailDetector
    >>> model = PerKeyDetector(TailDetector(), key="device")
    >>> for step in range(200):
    ...     model.learn_one({"device": "a", "load": step % 10})
    ...     model.learn_one({"device": "b", "load": 500 + step % 10})
    >>> [model.score_one({"device": d, "load": 505}) > 1 for d in ("a", "b")]
    [True, False]

    """

    _method = "perkeydetector"
    _task = "detection"

    @exclusive
    def learn_one(self, x: Mapping[Any, Any]) -> None:  # type: ignore[override]
        """Learn one instance with the detector of its key; make one for a new key."""
        self._learn(x)

    @exclusive
    def learn_many(self, X: Any) -> None:  # type: ignore[override]
        """Learn instances in order; all are checked before anything is learned."""
        warn_texts(X, self._knows)
        rows = list(instances(X))
        self._check_rows(rows, itertools.repeat(None), itertools.repeat(1.0))
        for x in rows:
            self.learn_one(x)

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score by the detector of the key; 0 before the key was learned. Changes nothing."""
        learner, rest = self._for(x)
        score: float = learner.score_one(rest)
        return score

    def p_value_one(self, x: Mapping[Any, Any]) -> float:
        """Return the p-value by the detector of the key; 1 before the key was learned. Changes nothing."""
        learner, rest = self._for(x)
        p: float = learner.p_value_one(rest)
        return p

    def score_and_p_value_one(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Return what `score_one` and `p_value_one` return, at the cost of one of them. Changes nothing."""
        learner, rest = self._for(x)
        both: tuple[float, float] = learner.score_and_p_value_one(rest)
        return both

    def is_anomaly_one(self, x: Mapping[Any, Any], rate: float | None = None) -> bool:
        """Return whether the instance is an alarm of the key's detector, at its rate or this one. Changes nothing."""
        learner, rest = self._for(x)
        alarm: bool = learner.is_anomaly_one(rest, rate)
        return alarm

    @exclusive
    def label_one(self, x: Mapping[Any, Any], anomaly: bool) -> None:
        """Learn whether an instance is an anomaly, with the detector of its key: see `AutoDetector.label_one`."""
        key, rest = self._split(x)
        if not hasattr(self._blank, "label_one"):
            raise ParameterError(f"a {type(self._blank).__name__} learns no labels; an AutoDetector does")
        learner: Any = self.learner(key)
        if learner is None:
            raise DataError(
                f"the key {key!r} has no detector, because it has learned no instance or was forgotten; learn an "
                "instance of the key before its labels"
            )
        learner.label_one(rest, anomaly)

    @property
    def rate(self) -> float:
        """Share of the instances that are alarms, a parameter of each detector."""
        rate: float = self._blank.rate
        return rate

    def explain_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the contribution of each feature to the score of the key's detector."""
        learner, rest = self._for(x)
        parts: dict[Any, float] = learner.explain_one(rest)
        return parts

    def score_many(self, X: Any) -> Any:
        """Return what `score_one` returns for each instance: a Series or an Array for a frame, else a list."""
        return frames.label_column([self.score_one(x) for x in instances(X)], X)


def by_key(learner: Any, key: Key, max_keys: int | None = None) -> KeyedLearner:
    """Make one learner like this one per value of a field, by its task."""
    cls = PerKeyDetector if is_detector(learner) else PerKeyRegressor if is_regressor(learner) else PerKey
    return cls(learner, key=key, max_keys=max_keys)
