"""Cells, the smallest pieces of work: one learner on one permutation and mask of one data set."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

__all__ = ["CURVE_POINTS", "Cell", "Outcome", "curve_ends"]

CURVE_POINTS = 60


@dataclass(frozen=True, order=True)
class Cell:
    """One run of one learner. Equal cells have equal outcomes in every table."""

    data: str
    """A registered data set, ``made:...`` for a generated one, ``file:...`` for a file."""
    scenario: str
    shuffle: bool
    scale: str
    """Steps applied to the whole set before the stream starts, joined by ``+``: codes or filecodes (numbers for
    string values), zscore or minmax (these look ahead), positive=LABEL (label of F-measures), first=N (the first N
    rows only); none for nothing."""
    model: str
    overrides: str
    """Parameters to set if the learner has them and `model` does not, so that it does not scale again."""
    seed: int

    @property
    def stream(self) -> tuple[str, str, bool, str, int]:
        """Return what cells on the same stream have in common."""
        return self.data, self.scenario, self.shuffle, self.scale, self.seed

    @property
    def kind(self) -> tuple[str, str, bool, str, str, str]:
        """Return what cells that differ only by seed have in common."""
        return self.data, self.scenario, self.shuffle, self.scale, self.model, self.overrides


@dataclass(frozen=True)
class Outcome:
    """Outcome of a cell; everything but the times is the same in every run."""

    cer: float
    accuracy: float
    f1: float
    balanced_accuracy: float
    auroc: float
    auprc: float
    log_loss: float
    brier: float
    calibration_error: float
    majority_cer: float
    majority_share: float
    errors: int
    scored: int
    instances: int
    empty: int
    names: int
    known: int | None
    """Features of the learner at the end, and the number with a weight; None if unknown."""
    weighted: int | None
    curve: bytes
    """CER so far at `curve_ends`, as 32-bit floats."""
    loss_curve: bytes
    """Mean log loss so far at `curve_ends`, as 32-bit floats; NaN before the first probability."""
    data_sha: str
    stream_sha: str
    seconds: float
    """Time in the learner."""
    wall: float
    """Time of the whole cell."""
    mae: float = math.nan
    """This and the following are metrics of regressors, whose others are NaN; their curves are MAE and RMSE so far."""
    rmse: float = math.nan
    r2: float = math.nan
    mape: float = math.nan
    pinball: float = math.nan
    mean_mae: float = math.nan
    """MAE of the mean of the targets so far."""
    cpu: float = math.nan
    """CPU seconds of the process during the run, evaluation included: unlike `seconds` not longer on a busy machine."""
    memory: float = math.nan
    """Bytes that the learner has in memory at the end: growth of the process, or what the learner reports."""
    uncertainty: str = ""
    """JSON: scores of intervals or sets of labels, name -> number by coverage; empty without coverages."""

    @property
    def by_coverage(self) -> dict[str, dict[str, float]]:
        """Return the scores of intervals or sets of labels by coverage."""
        scores: dict[str, dict[str, float]] = json.loads(self.uncertainty) if self.uncertainty else {}
        return scores

    def value(self, metric: str) -> float:
        """Return a metric by name; ``covered@0.9`` is `covered` at coverage 0.9, NaN if it was not measured."""
        name, _, coverage = metric.partition("@")
        if coverage:
            return self.by_coverage.get(coverage, {}).get(name, math.nan)
        return float(getattr(self, metric))


def curve_ends(instances: int) -> list[int]:
    """Return the number of instances at each point of a stored curve."""
    width = max(1, -(-instances // CURVE_POINTS))
    return [min(end, instances) for end in range(width, instances + width, width)]
