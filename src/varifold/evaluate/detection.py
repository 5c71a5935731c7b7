"""Metrics of anomaly scores, where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._numeric.ranking import tabulate

__all__ = ["DetectionScores", "detection_scores"]


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """How well scores separate anomalies from the rest, and what the alarms were worth."""

    instances: int
    anomalies: int
    auroc: float
    """Share of pairs of an anomaly and another instance in which the anomaly has the larger score; ties count half."""
    average_precision: float
    """Mean over the anomalies of the precision among the instances with at least the same score."""
    alarms: int
    precision: float
    """Share of the alarms that are anomalies."""
    recall: float
    """Share of the anomalies with an alarm."""


def detection_scores(scores: Any, anomaly: Any, alarms: Any) -> DetectionScores:
    """Compute the metrics of scores, given what is an anomaly and where there was an alarm (both Boolean).

    Examples
    --------
    >>> from varifold.evaluate import detection_scores
    >>> found = detection_scores([0.1, 3.0, 0.2, 2.0], [False, True, False, False], [False, True, False, True])
    >>> found.auroc, found.precision, found.recall
    (1.0, 0.5, 1.0)

    """
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    truth = np.asarray(anomaly, dtype=bool)
    raised = np.asarray(alarms, dtype=bool)
    counts = np.ascontiguousarray([truth, ~truth], dtype=np.float64)
    _, odd, usual = tabulate(scores, counts) if len(scores) else np.zeros((3, 0))
    hits = int((truth & raised).sum())
    return DetectionScores(
        instances=len(scores),
        anomalies=int(truth.sum()),
        auroc=_ratio(float(odd @ (np.cumsum(usual) - 0.5 * usual)), float(odd.sum() * usual.sum())),
        average_precision=_average_precision(odd, usual),
        alarms=int(raised.sum()),
        precision=_ratio(hits, int(raised.sum())),
        recall=_ratio(hits, int(truth.sum())),
    )


def _average_precision(odd: NDArray[np.float64], usual: NDArray[np.float64]) -> float:
    above = np.cumsum(odd[::-1])
    total = above + np.cumsum(usual[::-1])
    return _ratio(float(odd[::-1] @ (above / np.maximum(total, 1.0))), float(odd.sum()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
