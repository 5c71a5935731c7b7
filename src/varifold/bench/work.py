"""Run one cell; this is the part that worker processes do."""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from varifold.base.coverages import coverage_key
from varifold.base.learner import is_detector
from varifold.base.spec import ModelSpec, parameters, parse_model, parse_value
from varifold.bench.cell import CURVE_POINTS, Cell, Outcome
from varifold.bench.detection import detect
from varifold.bench.sources import CellStream, stream_of
from varifold.errors import VarifoldError
from varifold.evaluate import REGRESSION_METRICS, RegressionResult, prequential
from varifold.evaluate.metrics import Floats
from varifold.evaluate.uncertainty import IntervalScores, SetScores

__all__ = ["Failure", "attempt", "measure", "spec_of"]

Failure = str
"""Why a cell has no outcome."""


def spec_of(cell: Cell) -> ModelSpec:
    """Return the learner of a cell: apply the cell's overrides that the model accepts and does not set itself.

    It may be imported: cells that are run come from the command line, from code and from the tables these name.
    """
    spec = parse_model(cell.model, imports=True, detectors=True)
    given = {key: parse_value(text, imports=True) for key, text in parameters(cell.overrides, cell.overrides).items()}
    return spec.having(**{k: v for k, v in given.items() if spec.accepts(k) and k not in dict(spec.params)})


def measure(cell: Cell) -> Outcome:
    """Run the learner of a cell over its stream."""
    started = perf_counter()
    spec = spec_of(cell)
    stream = stream_of(cell)
    before = resident()
    learner = spec()
    if is_detector(learner):
        return _detection(learner, stream, before, started)
    used = process_time()
    result = prequential(learner, stream.prepared, positive=_positive(stream), curve_points=CURVE_POINTS)
    used = process_time() - used
    known, weighted = _size(learner)
    numeric = isinstance(result, RegressionResult)
    curve = result.curve
    copied: dict[str, Any] = {n: getattr(result, n, math.nan) for n in (*_COPIED, *REGRESSION_METRICS[:-1])}
    return Outcome(
        **copied,
        errors=0 if numeric else result.errors,
        known=known,
        weighted=weighted,
        curve=_packed(curve.mae if numeric else curve.cer),
        loss_curve=_packed(curve.rmse if numeric else curve.log_loss),
        cpu=used,
        memory=_memory(learner, before),
        uncertainty=_by_coverage(result.intervals if numeric else result.sets),
        data_sha=stream.data_sha,
        stream_sha=stream.stream_sha,
        wall=perf_counter() - started,
    )


def _detection(detector: Any, stream: CellStream, before: float, started: float) -> Outcome:
    """Return the outcome of a detector: the metrics that need labels or numbers as predictions are NaN."""
    block = stream.prepared.block
    used = process_time()
    result = detect(detector, block, stream.positive)
    used = process_time() - used
    known, weighted = _size(detector)
    n = len(block)
    counts = {
        "errors": 0,
        "scored": n,
        "instances": n,
        "empty": stream.prepared.empty,
        "names": len(np.unique(block.indices)),
    }
    return Outcome(
        **{**dict.fromkeys(_COPIED, math.nan), **counts, **result},
        known=known,
        weighted=weighted,
        curve=b"",
        loss_curve=b"",
        cpu=used,
        memory=_memory(detector, before),
        data_sha=stream.data_sha,
        stream_sha=stream.stream_sha,
        wall=perf_counter() - started,
    )


_COPIED = (
    "cer",
    "accuracy",
    "f1",
    "balanced_accuracy",
    "auroc",
    "auprc",
    "log_loss",
    "brier",
    "calibration_error",
    "majority_cer",
    "majority_share",
    "scored",
    "instances",
    "empty",
    "names",
    "seconds",
)


def _positive(stream: CellStream) -> Any:
    values = stream.prepared.block.labels.values
    return stream.positive if stream.positive in values or str(stream.positive) in map(str, values) else None


def _by_coverage(scores: Sequence[IntervalScores | SetScores]) -> str:
    """Return the scores of intervals or sets as JSON; empty without any."""
    by_coverage = {
        coverage_key(each.coverage): {k: v for k, v in vars(each).items() if k != "coverage"} for each in scores
    }
    return json.dumps(by_coverage) if by_coverage else ""


def _packed(curve: Floats) -> bytes:
    return curve.astype("<f4").tobytes()


def _size(learner: Any) -> tuple[int | None, int | None]:
    """Count the learner's features, and those with a weight other than 0."""
    features = getattr(learner, "features", None)
    if not isinstance(features, dict):
        return None, None
    weights = np.array([f.weight for f in features.values()], dtype=np.float64)
    return len(weights), int(np.count_nonzero(weights))


def resident() -> float:
    """Return the resident size of this process in bytes, free memory given back first; NaN where it is unknown."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, AttributeError, TypeError):  # not Linux, or another C library
        return math.nan
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _memory(learner: Any, before: float) -> float:
    """Return the bytes of a learner: what it reports if it lives elsewhere (Java), else the growth of the process."""
    if hasattr(learner, "memory_elsewhere"):
        return float(learner.memory_elsewhere())
    return max(0.0, resident() - before)


def attempt(cell: Cell) -> tuple[Cell, Outcome | Failure]:
    """Run a cell; return an error of the learner or its data instead of raising it, so that other cells continue."""
    try:
        return cell, measure(cell)
    except (VarifoldError, ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        return cell, f"{type(error).__name__}: {error}"
