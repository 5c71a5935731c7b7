"""Every metric from a few sums, so that nothing is kept per instance."""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

METRICS = (
    "cer",
    "accuracy",
    "f1",
    "balanced_accuracy",
    "log_loss",
    "brier",
    "calibration_error",
    "majority_cer",
    "us_per_instance",
)
"""Names of the metrics that repeats are summarised over."""

BINS = 15
SMALLEST = 1e-15
_CELLS = 4_000_000


class Tally:
    """Confusion matrix, proper scores and calibration bins of the instances scored so far.

    Rows of the confusion matrix are true labels; its column 0 counts answers that were none of the stream's labels
    (such as None before the first label), column c + 1 the label of code c.
    """

    def __init__(self) -> None:
        self.confusion: Ints = np.zeros((0, 1), dtype=np.int64)
        self.majority_errors = 0
        self.log_loss = 0.0
        self.brier = 0.0
        self.rated = 0
        self.bins = np.zeros((3, BINS))

    def add(self, truth: Ints, predicted: Ints, majority: Ints, labels: int) -> None:
        """Count answers, and those of the running majority class; codes, -1 where there was no answer."""
        self.confusion = grown(self.confusion, labels)
        cells = truth.astype(np.int64) * (labels + 1) + predicted + 1
        self.confusion += np.bincount(cells, minlength=labels * (labels + 1)).reshape(labels, labels + 1)
        self.majority_errors += int((truth != majority).sum())

    def rate(self, truth: Ints, predicted: Ints, probabilities: Floats) -> None:
        """Add the probabilities of answered instances whose true label the learner had learned before."""
        if not len(truth):
            return
        rows = np.arange(len(truth))
        given = probabilities[rows, truth]
        self.log_loss += float(-np.log(np.clip(given, SMALLEST, 1.0)).sum())
        self.brier += float((np.square(probabilities).sum(axis=1) - 2.0 * given + 1.0).sum())
        self.rated += len(truth)
        confidence = probabilities[rows, predicted]
        where = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        self.bins[0] += np.bincount(where, minlength=BINS)
        self.bins[1] += np.bincount(where, weights=confidence, minlength=BINS)
        self.bins[2] += np.bincount(where, weights=predicted == truth, minlength=BINS)

    def scores(self, positive: int | None) -> dict[str, float]:
        """All metrics; f1 is that of the positive label's code, or the mean over labels when it is None."""
        scored = int(self.confusion.sum())
        hits = np.diagonal(self.confusion, offset=1)
        accuracy = float(hits.sum()) / scored if scored else float("nan")
        return {
            "cer": (scored - int(hits.sum())) / scored if scored else float("nan"),
            "accuracy": accuracy,
            "f1": f1(self.confusion, positive),
            "balanced_accuracy": balanced_accuracy(self.confusion),
            "majority_cer": self.majority_errors / scored if scored else float("nan"),
            **self._proper_scores(),
        }

    def _proper_scores(self) -> dict[str, float]:
        if not self.rated:
            return dict.fromkeys(("log_loss", "brier", "calibration_error"), float("nan"))
        half = 0.5 if len(self.confusion) <= 2 else 1.0
        return {
            "log_loss": self.log_loss / self.rated,
            "brier": half * self.brier / self.rated,
            "calibration_error": float(np.abs(self.bins[1] - self.bins[2]).sum()) / self.rated,
        }


def grown(confusion: Ints, labels: int) -> Ints:
    """The matrix with room for more labels."""
    if len(confusion) == labels:
        return confusion
    larger = np.zeros((labels, labels + 1), dtype=np.int64)
    larger[: confusion.shape[0], : confusion.shape[1]] = confusion
    return larger


def f1(confusion: Ints, positive: int | None) -> float:
    """F1 of one label, or the mean over the labels that occur; 0 where a label was never answered correctly."""
    if not confusion.sum():
        return float("nan")
    hits = np.diagonal(confusion, offset=1)
    actual = confusion.sum(axis=1)
    answered = confusion[:, 1:].sum(axis=0)
    each = 2.0 * hits / np.maximum(actual + answered, 1)
    if positive is not None:
        return float(each[positive])
    return float(each[(actual + answered) > 0].mean())


def balanced_accuracy(confusion: Ints) -> float:
    """Mean recall over the labels that occur."""
    actual = confusion.sum(axis=1)
    occurs = actual > 0
    if not occurs.any():
        return float("nan")
    return float((np.diagonal(confusion, offset=1)[occurs] / actual[occurs]).mean())


class Majority:
    """The label learned most often so far: what a learner that ignores every feature would answer."""

    def __init__(self) -> None:
        self.counts: Ints = np.zeros(0, dtype=np.int64)

    def answers(self, learned: Ints, before: Ints, labels: int) -> Ints:
        """Answers given when `before` of the labels `learned` (codes, in order) had arrived; -1 before any."""
        self.counts = np.concatenate([self.counts, np.zeros(labels - len(self.counts), dtype=np.int64)])
        leaders = np.empty(len(learned) + 1, dtype=np.int64)
        leaders[0] = self.counts.argmax() if self.counts.any() else -1
        step = max(1, _CELLS // max(1, labels))
        for lo in range(0, len(learned), step):
            part = learned[lo : lo + step]
            running = self.counts + np.cumsum(part[:, None] == np.arange(labels), axis=0)
            leaders[lo + 1 : lo + 1 + len(part)] = running.argmax(axis=1)
            self.counts = running[-1]
        return leaders[before]
