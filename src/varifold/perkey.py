"""PerKey and PerKeyRegressor: one learner per value of a field, such as one per device, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import base as river_base

from varifold import vote
from varifold._keyed import KeyedLearner
from varifold._shelf import Key
from varifold.base import Block, files
from varifold.base.blocks import with_numbers
from varifold.base.learner import VaryingLearner, is_regressor

__all__ = ["Key", "KeyedLearner", "PerKey", "PerKeyRegressor", "by_key", "from_bytes", "load"]


class PerKey(KeyedLearner, river_base.Classifier):  # type: ignore[misc]
    """One classifier per value of a field; each sees only the instances of its key, without the field.

    A learner is made when its key is first learned. Beyond a bound the least recently used ones are kept on disk, in
    a temporary file that ends with the process, and come back when their key does; where they are never shows in an
    answer. `save` writes all of them to one file. When the disk is full, the call raises OSError and nothing is
    learned or lost.

    Parameters
    ----------
    model
        A learner that is copied for each key as it is before learning, or the spelling of one, such as ``"arow:r=1"``.
    key
        The field that holds the key, a str or an int.
    most
        Most learners in memory.

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
    _numeric = False

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Probability by label; empty before the key was learned. Changes nothing."""
        learner, rest = self._for(x)
        found: dict[Any, float] = learner.predict_proba_one(rest)
        return found

    def explain_one(self, x: Mapping[Any, Any], label: Hashable = None) -> dict[Any, float]:
        """What each feature adds to the score that the learner of the key gives a label."""
        learner, rest = self._for(x)
        found: dict[Any, float] = learner.explain_one(rest, label)
        return found

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predict and learn a block, for evaluation: indices into `classes` (-1: none yet) and probabilities.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it) lets labels arrive late.
        """
        rows, n = list(block.rows()), len(block)
        answers: list[Any] = [None] * n
        shares: list[dict[Any, float]] = [{}] * n

        def ask(i: int) -> None:
            answers[i], shares[i] = self.predict_one(rows[i]), self.predict_proba_one(rows[i])

        self._walk(block, schedule, block.y, ask)
        index = {y: k for k, y in enumerate(self._labels)}
        codes = np.array([index.get(y, -1) for y in answers], dtype=np.int32)
        probabilities = np.zeros((n, max(1, len(index))))
        for i, share in enumerate(shares):
            for y, p in share.items():
                probabilities[i, index[y]] = p
        return codes, probabilities

    @property
    def classes(self) -> list[Any]:
        """Labels of all learners, in order of first sight."""
        return list(self._labels)

    @property
    def _multiclass(self) -> bool:
        return True


class PerKeyRegressor(KeyedLearner, river_base.Regressor):
    """One regressor per value of a field; each sees only the instances of its key, without the field.

    As `PerKey`, for numbers.

    Parameters
    ----------
    model
        A regressor that is copied for each key as it is before learning, or the spelling of one, such as
        ``"arowregressor:r=1"``.
    key
        The field that holds the key, a str or an int.
    most
        Most learners in memory.

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
    _numeric = True

    def explain_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """What each feature adds to the prediction of the learner of the key."""
        learner, rest = self._for(x)
        found: dict[Any, float] = learner.explain_one(rest)
        return found

    def run_block(self, block: Block, schedule: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Predict and learn a block, for evaluation: one prediction per row, NaN for a row that is not predicted.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it) lets targets arrive late.
        """
        rows, numbers = list(block.rows()), with_numbers(block).targets
        found = np.full(len(block), np.nan)

        def ask(i: int) -> None:
            found[i] = self.predict_one(rows[i])

        self._walk(block, schedule, numbers, ask)
        return found


def by_key(learner: Any, key: Key) -> KeyedLearner:
    """One learner like this one per value of a field: a `PerKey`, or a `PerKeyRegressor` of a regressor."""
    return (PerKeyRegressor if is_regressor(learner) else PerKey)(learner, key=key)


def load(path: str | os.PathLike[str]) -> Any:
    """The learner in a model file: one of any registered method, one per key, or a vote."""
    return _opened(*files.read(path), path)


def from_bytes(data: bytes) -> Any:
    """The learner that `to_bytes` encoded: of any registered method, one per key, or a vote; checked like a file."""
    return _opened(*files.decode_bytes(data))


def _opened(header: dict[str, Any], arrays: files.Arrays, source: files.Source) -> Any:
    composites: dict[str, Any] = {cls._method: cls for cls in (PerKey, PerKeyRegressor)} | {vote.METHOD: vote.Vote}
    return composites.get(header["method"], VaryingLearner)._restored(header, arrays, source)
