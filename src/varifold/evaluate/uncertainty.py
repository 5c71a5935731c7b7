"""Scores of intervals and sets of labels: how often they contain the truth, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varifold.evaluate.metrics import Bools, Floats, Ints

__all__ = ["IntervalScores", "IntervalTally", "SetScores", "SetTally"]


@dataclass(frozen=True)
class IntervalScores:
    """Intervals of one coverage; they are infinite for instances scored before any error was measured."""

    coverage: float
    """Requested share."""
    covered: float
    """Share of the targets that were inside."""
    width: float
    """Mean width of the finite intervals."""
    interval_score: float
    """Mean over the finite ones of the width plus 2 / (1 - coverage) times the distance of a target outside."""
    infinite: float
    """Share of infinite intervals."""


@dataclass(frozen=True)
class SetScores:
    """Sets of labels of one coverage."""

    coverage: float
    """Requested share."""
    covered: float
    """Share of the true labels that were in the set."""
    size: float
    """Mean number of labels."""
    empty: float
    """Share of empty sets."""
    all_labels: float
    """Share of sets with every label known at that time."""


class IntervalTally:
    """Sums over the intervals so far, by coverage."""

    def __init__(self, coverages: Sequence[float]) -> None:
        self.coverages = tuple(coverages)
        self.scored = 0
        self.sums = np.zeros((4, len(self.coverages)))  # covered, width, score, finite

    def add(self, truth: Floats, bounds: Floats) -> None:
        """Add targets and their intervals, instances x coverages x (low, high)."""
        low, high = bounds[:, :, 0], bounds[:, :, 1]
        finite = np.isfinite(high - low)
        width = np.where(finite, high - low, 0.0)
        missed = np.maximum(low - truth[:, None], 0.0) + np.maximum(truth[:, None] - high, 0.0)
        score = width + 2.0 / (1.0 - np.array(self.coverages)) * missed
        self.scored += len(truth)
        self.sums += [part.sum(axis=0) for part in (missed == 0.0, width, np.where(finite, score, 0.0), finite)]

    def scores(self) -> list[IntervalScores]:
        """Return one entry per coverage, ascending."""
        covered, width, score, finite = self.sums.tolist()
        missing = float("nan")
        return [
            IntervalScores(
                coverage=coverage,
                covered=covered[j] / self.scored if self.scored else missing,
                width=width[j] / finite[j] if finite[j] else missing,
                interval_score=score[j] / finite[j] if finite[j] else missing,
                infinite=1.0 - finite[j] / self.scored if self.scored else missing,
            )
            for j, coverage in enumerate(self.coverages)
        ]


class SetTally:
    """Sums over the sets so far, by coverage."""

    def __init__(self, coverages: Sequence[float]) -> None:
        self.coverages = tuple(coverages)
        self.scored = 0
        self.sums = np.zeros((4, len(self.coverages)))  # covered, labels, empty, all labels
        self.known: set[int] = set()

    def known_before(self, learned: Ints, before: Ints) -> Ints:
        """Return the number of labels known after the first `before` of these labels were learned."""
        if not self.coverages:
            return before
        counts = [len(self.known)]
        for label in learned.tolist():
            self.known.add(label)
            counts.append(len(self.known))
        return np.array(counts, dtype=np.int64)[before]

    def add(self, truth: Ints, sets: Bools, known: Ints) -> None:
        """Add label codes, the labels in the sets (instances x coverages x labels), and the number of known labels."""
        covered = np.take_along_axis(sets, truth[:, None, None], axis=2)[:, :, 0]
        size = sets.sum(axis=2)
        self.scored += len(truth)
        self.sums += [part.sum(axis=0) for part in (covered, size, size == 0, size == known[:, None])]

    def scores(self) -> list[SetScores]:
        """Return one entry per coverage, ascending."""
        means = self.sums / self.scored if self.scored else np.full_like(self.sums, np.nan)
        return [SetScores(coverage, *means[:, j].tolist()) for j, coverage in enumerate(self.coverages)]
