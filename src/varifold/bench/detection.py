"""Run a detector over the stream of a cell: every row is scored, then learned; its label only rates the scores."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from varifold.base import Block
from varifold.base.detector import VaryingDetector
from varifold.errors import DataError
from varifold.evaluate import detection_scores

__all__ = ["detect", "matrix"]


def matrix(block: Block) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the block as a matrix; NaN where a value is absent."""
    X = np.full((len(block), block.vocabulary.size), np.nan)
    X[np.repeat(np.arange(len(block)), np.diff(block.indptr)), block.indices] = block.values
    there: np.ndarray[Any, np.dtype[np.float64]] = X[:, ~np.isnan(X).all(axis=0)]
    return there


def detect(detector: Any, block: Block, anomaly: Any) -> dict[str, Any]:
    """Return AUROC, average precision (as ``auprc``) and the seconds in the detector.

    `anomaly` is the label of an anomaly, or its text. Ours run in compiled code. One that has `score_all` sees all rows
    at once: it is offline, and a ceiling. Rows without features have the score 0.
    """
    labels = [str(label) for label in block.labels.values]
    if str(anomaly) not in labels:
        raise DataError(f"no row has the label {anomaly!r} of anomalies; the labels are {', '.join(labels)}")
    started = perf_counter()
    if isinstance(detector, VaryingDetector):
        scores = detector.run_block(block)[0]
    elif hasattr(detector, "score_all"):
        scores = detector.score_all(matrix(block))
    else:
        scores = np.array([_step(detector, x) for x in block.rows()])
    seconds = perf_counter() - started
    if np.isnan(scores).any():
        raise DataError(f"{int(np.isnan(scores).sum())} of {len(scores)} scores are NaN")
    result = detection_scores(scores, block.codes == labels.index(str(anomaly)), np.zeros(len(block)))
    return {"auroc": result.auroc, "auprc": result.average_precision, "seconds": seconds}


def _step(detector: Any, x: dict[Any, Any]) -> float:
    if not x:
        return 0.0
    score = float(detector.score_one(x))
    detector.learn_one(x)
    return score
