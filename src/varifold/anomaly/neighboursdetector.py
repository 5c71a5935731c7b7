"""NeighboursDetector: instances that are unlike any recent one."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.anomaly._neighbours import NeighboursDetectorModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["NeighboursDetector"]


@declared
class NeighboursDetector(VaryingDetector):
    """Distance to the nearest of the last instances, over the features present, compared with what is usual.

    Choose it if normal instances form several groups, of whatever form, and anomalies lie between them.

    Parameters
    ----------
    k
        Neighbours whose distances are averaged.
    window
        Instances remembered.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* Ramaswamy et al. rank by the distance to the k-th neighbour in a data set; here the
    mean squared distances to the k nearest of the last instances are averaged. An instance with many features is
    farther from its neighbours than one with few, so the score is in deviations from the mean of instances with about
    as many features. Values are standardised online and limited to 8 deviations. A feature that the neighbour does not
    have counts as 2, the mean of two unrelated values. A column that fewer than a tenth of the instances have, such as
    a new one, is not compared, nor is a string that no instance had before. Of an instance with more than 512 features
    the first 512 slots are kept.

    *Cost.* O(window x present) to score, O(present) to learn.

    Examples
    --------
    >>> from varifold import NeighboursDetector
    >>> model = NeighboursDetector()
    >>> for step in range(300):
    ...     mode = step % 2
    ...     model.learn_one({"a": mode + step % 7 / 100, "b": 1 - mode + step % 5 / 100})
    >>> model.score_one({"a": 1.0, "b": 1.0}) > 2 > model.score_one({"a": 1.0, "b": 0.0})
    True

    References
    ----------
    S. Ramaswamy, R. Rastogi, K. Shim. Efficient algorithms for mining outliers from large data sets. SIGMOD 2000.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"k": Integer(1, 64), "window": Integer(1, 1_000_000)}
    _cost = "O(window x present)"

    k: int = 20
    window: int = 300
    scale: str = field(default="standard", init=False)
    clip: float = field(default=8.0, init=False)

    def _model(self) -> NeighboursDetectorModel:
        return NeighboursDetectorModel(self.k, self.window)
