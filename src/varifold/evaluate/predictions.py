"""Predictions of a run, kept or passed to a function batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.evaluate.metrics import Bools, Floats, Ints

__all__ = ["Predictions", "RegressionPredictions", "column_names", "joined", "joined_regression"]


@dataclass(frozen=True, kw_only=True)
class _Predictions:
    """Predictions for consecutive instances, each made before its label was learned."""

    start: int
    """Number of instances of the stream before the first."""
    ids: list[Any] | None = None
    times: list[Any] | None = None
    coverages: tuple[float, ...] = ()
    """Coverages of the intervals or sets, ascending; empty for a learner without."""

    def _place(self, i: int) -> dict[str, Any]:
        """Return the position of a prediction in the stream: its row, its id and its time, if it has them."""
        place: dict[str, Any] = {"row": self.start + i + 1}
        if self.ids is not None:
            place["id"] = self.ids[i]
        if self.times is not None:
            place["time"] = self.times[i]
        return place


@dataclass(frozen=True, kw_only=True)
class Predictions(_Predictions):
    """Predictions of a classifier for consecutive instances, each made before its label was learned."""

    labels: list[Any]
    """Labels of the stream so far."""
    truth: Ints
    """Position of each true label in `labels`; -1 without one."""
    predicted: Ints
    """Position of each predicted label in `labels`; -1 for none."""
    probabilities: Floats | None
    """Instances x labels; None for a learner without probabilities."""
    sets: Bools | None = None
    """Which labels the sets contain, instances x coverages x labels."""

    def __len__(self) -> int:
        return len(self.truth)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one dict per instance: row (or id), time, true label, predicted label, probabilities of the two.

        A probability is None if there is no such label or the learner has none. With coverages also the sets, as lists.
        """
        for i, (truth, predicted) in enumerate(zip(self.truth.tolist(), self.predicted.tolist(), strict=True)):
            yield self._place(i) | {
                "true": self.labels[truth] if truth >= 0 else None,
                "label": self.labels[predicted] if predicted >= 0 else None,
                "p": self._probability(i, predicted),
                "p_true": self._probability(i, truth),
                **self._sets(i),
            }

    def _sets(self, i: int) -> dict[str, list[Any]]:
        """Return the sets of labels of an instance by column name."""
        if self.sets is None:
            return {}
        sets = ([self.labels[j] for j in np.flatnonzero(row)] for row in self.sets[i])
        return dict(zip(column_names("set", self.coverages), sets, strict=True))

    def _probability(self, i: int, label: int) -> float | None:
        if self.probabilities is None or label < 0:
            return None
        return float(self.probabilities[i, label])


@dataclass(frozen=True, kw_only=True)
class RegressionPredictions(_Predictions):
    """Predictions of a regressor for consecutive instances, each made before its target was learned."""

    truth: Floats
    """Targets; NaN without one."""
    predicted: Floats
    bounds: Floats | None = None
    """Low and high by coverage, instances x coverages x 2."""

    def __len__(self) -> int:
        return len(self.truth)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one dict per instance: row (or id), time, target, prediction, and error (None without a target).

        With coverages also low and high; None where they are infinite.
        """
        for i, (truth, predicted) in enumerate(zip(self.truth.tolist(), self.predicted.tolist(), strict=True)):
            missing = truth != truth
            error = None if missing else truth - predicted
            values = {"true": None if missing else truth, "prediction": predicted, "error": error}
            yield self._place(i) | values | self._bounds(i)

    def _bounds(self, i: int) -> dict[str, float | None]:
        if self.bounds is None:
            return {}
        names = zip(column_names("low", self.coverages), column_names("high", self.coverages), strict=True)
        values: dict[str, float | None] = {}
        for (low, high), pair in zip(names, self.bounds[i].tolist(), strict=True):
            values[low], values[high] = (bound if np.isfinite(bound) else None for bound in pair)
        return values


def column_names(what: str, coverages: Sequence[float]) -> list[str]:
    """Name a column for each coverage: the plain word if there is a single coverage."""
    return [what] if len(coverages) == 1 else [f"{what} {coverage:g}" for coverage in coverages]


def joined(parts: Sequence[Predictions], labels: list[Any]) -> Predictions:
    """Join parts; labels that a part did not know yet have probability 0 in it."""
    n = len(labels)
    return Predictions(
        **_joined_columns(parts, np.int64),
        labels=labels,
        probabilities=_stacked([_widened(part.probabilities, n) for part in parts], np.zeros((0, n))),
        sets=_stacked([_widened(part.sets, n) for part in parts]),
    )


def joined_regression(parts: Sequence[RegressionPredictions]) -> RegressionPredictions:
    """Join parts."""
    return RegressionPredictions(**_joined_columns(parts, np.float64), bounds=_stacked([part.bounds for part in parts]))


def _joined_columns(parts: Sequence[Any], kind: Any) -> dict[str, Any]:
    empty = np.zeros(0, dtype=kind)
    return {
        "start": 0,
        "truth": np.concatenate([empty, *(part.truth for part in parts)]),
        "predicted": np.concatenate([empty, *(part.predicted for part in parts)]),
        "ids": _chained([part.ids for part in parts]),
        "times": _chained([part.times for part in parts]),
        "coverages": parts[0].coverages if parts else (),
    }


def _widened(array: Any, labels: int) -> Any:
    """Add labels to the last axis of an array, with zeros."""
    if array is None:
        return None
    wide = np.zeros((*array.shape[:-1], labels), dtype=array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide


def _stacked(parts: Sequence[Any], empty: Any = None) -> Any:
    """Concatenate arrays; None if one is missing, `empty` without any."""
    if any(part is None for part in parts):
        return None
    return np.concatenate(parts) if parts else empty


def _chained(lists: Sequence[list[Any] | None]) -> list[Any] | None:
    known = [part for part in lists if part is not None]
    return [value for part in known for value in part] if known and len(known) == len(lists) else None
