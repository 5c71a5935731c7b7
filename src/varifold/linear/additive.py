"""Additive: a sum of learned one-feature curves."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, Real
from varifold.linear._additive import AdditiveRule


@declared
class Additive(VaryingClassifier):
    """Non-linear in every feature, additive over features: diagonal AROW on quantile bins and scaled values.

    Each numeric feature is cut at its running octiles; each bin has its own weight, in addition to the
    weight of the scaled value. An absent feature has no bin and no value, so it contributes nothing. Choose it when
    a feature's effect is not a straight line: thresholds, humps, saturation, heavy tails.

    Parameters
    ----------
    r
        Regularisation of the AROW update; larger is more cautious (r > 0).
    max_binned
        Slots that may have bins; later features are linear only, which `traits` reports.
    memory
        Observations of a feature that its weights remember; 0 remembers all, which is best when nothing drifts.
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *No paper.* The update is AROW's (see `AROW`) over an instance written as bin indicators, clipped scaled values and
    a constant. The octiles come from a sample of 128 of the feature's values so far and are recomputed when the
    feature has been seen 4, 8, 16, ... times; a bin's weight belongs to its rank, so it stays when edges move.
    Before the fourth value a feature is linear. Indicators of string values are linear.

    *Cost.* O(present), about three times AROW's.

    Examples
    --------
    >>> from varifold import Additive
    >>> model = Additive()
    >>> for step in range(400):
    ...     x = step * 7 % 100 / 100
    ...     model.learn_one({"load": x}, "fault" if 0.3 < x < 0.6 else "ok")
    >>> [model.predict_one({"load": x}) for x in (0.1, 0.45, 0.9)]
    ['ok', 'fault', 'ok']

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "r": Real(0, open_low=True),
        "max_binned": Integer(1),
        "memory": Real(0),
    }

    r: float = 30.0
    max_binned: int = 20_000
    memory: float = 0.0

    def _model(self) -> AdditiveRule:
        return AdditiveRule(self.r, self.max_binned, self.memory)
