"""AutoDetector: the default detector."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from varifold.anomaly._auto import AutoDetectorModel
from varifold.anomaly._copula import CopulaDetectorModel
from varifold.anomaly._isolation import IsolationModel
from varifold.anomaly._neighbours import NeighboursDetectorModel
from varifold.anomaly._tail import TailModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.estimator import undisturbed
from varifold.base.learner import Instance
from varifold.base.params import Constraint, Integer
from varifold.errors import TargetError

__all__ = ["AutoDetector"]

_WEIGHTS = {"tail": 1.0, "copula": 0.5, "neighbours": 2.0, "isolation": 1.0}
"""Weights of the experts without labels, in their order."""


@declared
class AutoDetector(VaryingDetector):
    """Default detector: four kinds of detectors at once.

    It needs no tuning. A `TailDetector` sees unusual values, a `CopulaDetector` unusual combinations, a
    `NeighboursDetector` instances unlike any recent one, an `IsolationDetector` what a few splits isolate. If a column
    is hardly ever absent, the first instance without it is somewhat unusual. Where instances have common and rare
    columns, as texts have words, rare ones are unusual.

    Parameters
    ----------
    seed
        Of the random splits.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *No paper.* The score is a weighted mean over the experts of ``-log(p)``, where p is the share of an expert's last
    1,000 scores that are larger, and a fifth of the largest of these: the same for all kinds of scores, large if
    several experts agree or if one is sure. Neighbours count twice, the copula half. Labels, if some come
    (`label_one`), multiply these weights, also that of the largest, by ``exp(-4 n (loss - least loss))``: the loss of
    an expert is the mean of p of the labelled anomalies and of 1 - p of the labelled usual instances, in equal parts,
    and n is the number of labels of the rarer kind. Earlier labels fade by .01 with each label of their kind.

    *Absence.* Columns of the instance before that are absent have a surprise, minus the logarithm of their share of
    absence. If their sum is more than three deviations above its mean, a quarter of its ``-log(p)`` is added: not
    where absences are common, and not after the first instance of an outage.

    *Rare columns.* Where shares of presence differ within instances (the variance of their logarithms is above 1), the
    ``-log(p)`` of the mean of minus their logarithms is added, too.

    `explain_one` splits each expert's part among the features that raise its score, and names columns that
    are absent, or rare and present.

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

    Labels are not needed. Where an operator confirms or rejects an alarm, they improve the weights:

    >>> before = model.weights["tail"]
    >>> for step in range(20):
    ...     model.label_one({"speed": 40, "flow": 150 + step}, anomaly=True)  # each value is usual
    ...     model.label_one({"speed": 3 * step, "flow": 6 * step}, anomaly=False)
    >>> model.weights["tail"] < before / 10
    True

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
            _WEIGHTS,
        )

    def label_one(self, x: Instance, anomaly: bool) -> None:
        """Learn whether an instance, learned before or not, is an anomaly: experts that scored it well gain weight.

        The instance itself is not learned again. An instance without known features changes nothing.
        """
        if not isinstance(anomaly, bool | np.bool_):
            raise TargetError(f"anomaly is {anomaly!r}; pass True for an anomaly, False for a usual instance")
        model: Any = self._engine.model
        with self._engine:
            model.begin_label()
            self._engine.predict_one(x)
            model.label(bool(anomaly))

    @property
    @undisturbed
    def weights(self) -> dict[str, float]:
        """Weight of each expert in the score; they sum to 1 and only labels change them."""
        model: Any = self._engine.model
        return dict(zip(_WEIGHTS, model.weights(), strict=True))
