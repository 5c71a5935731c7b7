"""AutoDetector: the default detector."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.anomaly._auto import AutoDetectorModel
from varifold.anomaly._copula import CopulaDetectorModel
from varifold.anomaly._isolation import IsolationModel
from varifold.anomaly._neighbours import NeighboursDetectorModel
from varifold.anomaly._tail import TailModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["AutoDetector"]


@declared
class AutoDetector(VaryingDetector):
    """Default detector: four kinds of detectors at once.

    It needs no tuning. A `TailDetector` sees unusual values, a `CopulaDetector` unusual combinations, a
    `NeighboursDetector` instances unlike any recent one, an `IsolationDetector` what a few splits isolate.

    Parameters
    ----------
    seed
        Of the random splits.
    max_features, evict
        See `VaryingDetector`.

    Notes
    -----
    *No paper.* The score is a weighted mean over the experts of ``-log(p)``, where p is the share of an expert's last
    1,000 scores that are larger: the same for all kinds of scores, and largest if several experts agree. Neighbours
    count twice, the copula half.

    `explain_one` splits each expert's part among the features that raise its score.

    *Cost.* The sum of the experts'.

    Examples
    --------
    >>> from varifold import AutoDetector
    >>> model = AutoDetector()
    >>> for step in range(500):
    ...     speed = step * 37 % 100
    ...     model.learn_one({"speed": speed, "flow": 2 * speed + step % 5})
    >>> model.is_anomaly_one({"speed": 300, "flow": -90}), model.is_anomaly_one({"speed": 80, "flow": 162})
    (True, False)

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"seed": Integer(0)}
    _cost = "O(present^3)"

    seed: int = 0
    scale: str = field(default="standard", init=False)
    clip: float = field(default=8.0, init=False)

    def _model(self) -> AutoDetectorModel:
        return AutoDetectorModel(
            {
                "tail": TailModel(250),
                "copula": CopulaDetectorModel(200, 129),
                "neighbours": NeighboursDetectorModel(10, 300),
                "isolation": IsolationModel(32, 256, self.seed),
            },
            {"tail": 1.0, "copula": 0.5, "neighbours": 2.0, "isolation": 1.0},
        )
