"""Metrics of anomaly scores, where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varifold.evaluate.metrics import RankedScores, ratio

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
    ranked = RankedScores()
    ranked.add(scores, truth, ~truth)
    auroc, average_precision = ranked.areas()
    hits = int((truth & raised).sum())
    return DetectionScores(
        instances=len(scores),
        anomalies=int(truth.sum()),
        auroc=auroc,
        average_precision=average_precision,
        alarms=int(raised.sum()),
        precision=ratio(hits, int(raised.sum())),
        recall=ratio(hits, int(truth.sum())),
    )
