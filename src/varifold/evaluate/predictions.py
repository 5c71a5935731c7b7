"""The answers of a run, kept or handed on instance by instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.base import Block
from varifold.evaluate.metrics import Bools, Floats, Ints
from varifold.streams import Batch

__all__ = ["Predictions", "RegressionPredictions", "answered", "joined", "joined_numbers"]


@dataclass(frozen=True)
class Predictions:
    """Answers to consecutive instances, each given before its label was learned."""

    start: int
    """How many instances of the stream came before the first."""
    labels: list[Any]
    """The stream's labels so far."""
    truth: Ints
    """Place of each true label in `labels`; -1 without one."""
    answers: Ints
    """Place of each answer in `labels`; -1 for none."""
    probabilities: Floats | None
    """Instances x labels; None from a learner that gives none."""
    ids: list[Any] | None = None
    times: list[Any] | None = None
    coverages: tuple[float, ...] = ()
    """Of the sets, ascending; empty for a learner without."""
    sets: Bools | None = None
    """Which labels the sets hold, instances x coverages x labels."""

    def __len__(self) -> int:
        return len(self.truth)

    def records(self) -> Iterator[dict[str, Any]]:
        """One dict per instance: row (or id), time, true label, answer, probabilities of the answer and of the truth.

        A probability is None where there is no such label, or none was given. With coverages also the sets, as lists.
        """
        for i, (truth, answer) in enumerate(zip(self.truth.tolist(), self.answers.tolist(), strict=True)):
            yield _place(self, i) | {
                "true": self.labels[truth] if truth >= 0 else None,
                "label": self.labels[answer] if answer >= 0 else None,
                "p": self._probability(i, answer),
                "p_true": self._probability(i, truth),
                **self._sets(i),
            }

    def _sets(self, i: int) -> dict[str, list[Any]]:
        if self.sets is None:
            return {}
        held = ([self.labels[j] for j in np.flatnonzero(row)] for row in self.sets[i])
        return dict(zip(column_names("set", self.coverages), held, strict=True))

    def _probability(self, i: int, label: int) -> float | None:
        if self.probabilities is None or label < 0:
            return None
        return float(self.probabilities[i, label])


@dataclass(frozen=True)
class RegressionPredictions:
    """Predictions of a regressor for consecutive instances, each given before its target was learned."""

    start: int
    """How many instances of the stream came before the first."""
    truth: Floats
    """The targets; NaN without one."""
    answers: Floats
    ids: list[Any] | None = None
    times: list[Any] | None = None
    coverages: tuple[float, ...] = ()
    """Of the intervals, ascending; empty for a learner without."""
    bounds: Floats | None = None
    """Low and high by coverage, instances x coverages x 2."""

    def __len__(self) -> int:
        return len(self.truth)

    def records(self) -> Iterator[dict[str, Any]]:
        """One dict per instance: row (or id), time, target, prediction and their difference, None without a target.

        With coverages also low and high; None where they are infinite.
        """
        for i, (truth, answer) in enumerate(zip(self.truth.tolist(), self.answers.tolist(), strict=True)):
            missing = truth != truth
            error = None if missing else truth - answer
            answered = {"true": None if missing else truth, "prediction": answer, "error": error}
            yield _place(self, i) | answered | self._bounds(i)

    def _bounds(self, i: int) -> dict[str, float | None]:
        if self.bounds is None:
            return {}
        names = zip(column_names("low", self.coverages), column_names("high", self.coverages), strict=True)
        found: dict[str, float | None] = {}
        for (low, high), pair in zip(names, self.bounds[i].tolist(), strict=True):
            found[low], found[high] = (bound if np.isfinite(bound) else None for bound in pair)
        return found


def _place(found: Predictions | RegressionPredictions, i: int) -> dict[str, Any]:
    """Where an answer stands in the stream: its row, and its id and time where there are any."""
    place: dict[str, Any] = {"row": found.start + i + 1}
    if found.ids is not None:
        place["id"] = found.ids[i]
    if found.times is not None:
        place["time"] = found.times[i]
    return place


def column_names(what: str, coverages: Sequence[float]) -> list[str]:
    """Names of columns by coverage: the plain word where there is one coverage only."""
    return [what] if len(coverages) == 1 else [f"{what} {coverage:g}" for coverage in coverages]


def _all(parts: Sequence[Any]) -> Any:
    """The parts one behind the other; None without any."""
    return np.concatenate(parts) if parts and all(part is not None for part in parts) else None


def joined_numbers(parts: Sequence[RegressionPredictions]) -> RegressionPredictions:
    """All parts as one."""
    return RegressionPredictions(
        start=0,
        truth=np.concatenate([np.zeros(0), *(part.truth for part in parts)]),
        answers=np.concatenate([np.zeros(0), *(part.answers for part in parts)]),
        ids=_chained([part.ids for part in parts]),
        times=_chained([part.times for part in parts]),
        coverages=parts[0].coverages if parts else (),
        bounds=_all([part.bounds for part in parts]),
    )


def answered(batch: Batch, block: Block, start: int, predicted: Ints, probabilities: Floats | None) -> Predictions:
    """The answers to a batch; `block` holds its labels."""
    labels = list(block.labels.values)
    return Predictions(start, labels, block.codes.copy(), predicted, probabilities, batch.ids, batch.times)


def joined(parts: Sequence[Predictions], labels: list[Any]) -> Predictions:
    """All parts as one; labels that a part did not know yet have probability 0 in it."""
    return Predictions(
        start=0,
        labels=labels,
        truth=np.concatenate([np.zeros(0, dtype=np.int64), *(part.truth for part in parts)]),
        answers=np.concatenate([np.zeros(0, dtype=np.int64), *(part.answers for part in parts)]),
        probabilities=_stacked([part.probabilities for part in parts], len(labels)),
        ids=_chained([part.ids for part in parts]),
        times=_chained([part.times for part in parts]),
        coverages=parts[0].coverages if parts else (),
        sets=_all([_widened(part.sets, len(labels)) for part in parts]),
    )


def _widened(sets: Bools | None, labels: int) -> Bools | None:
    """Sets over more labels, which they do not hold."""
    if sets is None:
        return None
    whole = np.zeros((*sets.shape[:2], labels), dtype=bool)
    whole[:, :, : sets.shape[2]] = sets
    return whole


def _stacked(parts: Sequence[Floats | None], labels: int) -> Floats | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    whole = np.zeros((sum(map(len, known)), labels))
    row = 0
    for part in known:
        whole[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return whole


def _chained(lists: Sequence[list[Any] | None]) -> list[Any] | None:
    known = [part for part in lists if part is not None]
    return [value for part in known for value in part] if known and len(known) == len(lists) else None
