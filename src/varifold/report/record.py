"""Record of a run: the figures that a report on its model shows, as plain data that a model file can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varifold.evaluate import RegressionResult, Summary

__all__ = ["run_record"]

_POINTS = 40
"""Most points of the curve."""
_MOST = 20
"""Most labels, confusions and columns."""


def run_record(
    summary: Summary, data: str, costs: Mapping[str, Any] | None = None, period: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the figures of the first repeat.

    `data` names what was read, `costs` are those of a run with costs, `period` the times of the first and last row.
    """
    result = summary.results[0]
    numeric = isinstance(result, RegressionResult)
    record = {
        "data": data,
        "task": "regression" if numeric else "classification",
        "instances": result.instances,
        "error": result.mae if numeric else result.cer,
        "baseline": result.mean_mae if numeric else result.majority_cer,
        **_curve(result, numeric),
        "coverage": [_coverage(scores) for scores in (result.intervals if numeric else result.sets)],
        "importances": [
            [str(name), each.loss, each.error, each.present] for name, each in list(result.importances.items())[:_MOST]
        ],
    }
    more = {"lowest": result.lowest, "highest": result.highest} if numeric else _labels(result)
    if costs:
        constant = costs["constant_cost"]
        more["costs"] = [costs["cost"]["mean"], constant["mean"], str(constant["label"])]
    if period is not None:
        more["period"] = list(period)
    return {key: _plain(value) for key, value in (record | more).items()}


def _curve(result: Any, numeric: bool) -> dict[str, Any]:
    """Return the error so far and within parts of the stream."""
    curve = result.curve
    so_far, window = (curve.mae, curve.window_mae) if numeric else (curve.cer, curve.window_cer)
    parts = np.array_split(np.arange(len(curve.at)), min(_POINTS, max(1, len(curve.at))))
    return {
        "at": [int(curve.at[part[-1]]) for part in parts if len(part)],
        "so_far": [float(so_far[part[-1]]) for part in parts if len(part)],
        "recent": [_mean(window[part]) for part in parts if len(part)],
        "alive": [int(curve.columns[part].max()) for part in parts if len(part)],
    }


def _mean(values: Any) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _coverage(scores: Any) -> list[float]:
    """Return requested and reached coverage, and the mean width of the intervals or size of the sets."""
    return [scores.coverage, scores.covered, getattr(scores, "width", None) or getattr(scores, "size", math.nan)]


def _labels(result: Any) -> dict[str, Any]:
    """Return the scores of the most frequent labels, and the pairs of labels that were confused most often."""
    scores = sorted(result.per_label().items(), key=lambda item: -item[1].count)
    pairs: list[list[Any]] = [
        [str(result.labels[i]), str(result.labels[j]), int(result.confusion[i, j + 1])]
        for i in range(len(result.labels))
        for j in range(len(result.labels))
        if i != j and result.confusion[i, j + 1]
    ]
    return {
        "requested": None if result.requested is None else str(result.requested),
        "labels": [[str(label), s.count, s.precision, s.recall] for label, s in scores[:_MOST]],
        "n_labels": len(scores),
        "confused": sorted(pairs, key=lambda pair: -pair[2])[:5],
    }


def _plain(value: Any) -> Any:
    """Return the value for JSON: floats with six digits, None for NaN."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
