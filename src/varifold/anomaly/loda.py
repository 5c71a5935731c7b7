"""LODA: histograms of random projections."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.anomaly._loda import LODAModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["LODA"]


@declared
class LODA(VaryingDetector):
    """Mean surprise under one-dimensional histograms of random projections.

    A light ensemble for many features; for few, `TailDetector` and `IsolationDetector` separate better.

    Parameters
    ----------
    projections
        Histograms of the ensemble.
    seed
        Of the projections.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* The paper draws normal weights of as many features as the root of their number;
    features come and go here, so each has the weight -1 or 1 in a third of the projections, drawn by its slot. A
    projection sums the standardised values of what is present and divides by the root of their number; one without a
    present feature is left out. A histogram has 64 bins of a quarter of a deviation and two beyond; its counts fade
    by .0005 per instance.

    `explain_one` returns by how much the score falls without each feature, and the rest.

    *Cost.* O(projections x present). An explanation takes a score per feature; of
    instances of more than 500 features, only those with the largest values are explained.

    Examples
    --------
    >>> from varifold import LODA
    >>> model = LODA()
    >>> for step in range(500):
    ...     model.learn_one({"a": step * 37 % 100, "b": step * 61 % 90})
    >>> model.score_one({"a": 500.0, "b": -400.0}) > model.score_one({"a": 50.0, "b": 40.0})
    True

    References
    ----------
    T. Pevný. Loda: Lightweight on-line detector of anomalies. Machine Learning 102, 2016.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"projections": Integer(1, 10_000), "seed": Integer(0)}
    _cost = "O(projections x present)"

    projections: int = 50
    seed: int = 0
    scale: str = field(default="standard", init=False)
    clip: float = field(default=8.0, init=False)

    def _model(self) -> LODAModel:
        return LODAModel(self.projections, self.seed)
