"""AdditiveRegressor: a sum of learned one-feature curves, for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, Real
from varifold.base.regressor import VaryingRegressor
from varifold.linear._additive import AdditiveRule
from varifold.linear._additiveregressor import AdditiveRegression


@declared
class AdditiveRegressor(VaryingRegressor):
    """Regressor that is non-linear in every feature and additive over features: quantile bins and scaled values.

    Each numeric feature is cut at its running octiles; each bin has its own weight, in addition to the
    weight of the scaled value. An absent feature has no bin and no value, so it contributes nothing. Choose it when
    a feature's effect is not a straight line: thresholds, humps, saturation, heavy tails.

    Parameters
    ----------
    r
        Variance of the noise, the targets being of variance 1; larger is more cautious (r > 0).
    max_binned
        Slots that may have bins; later features are linear only, which `traits` reports.
    memory
        Observations of a feature that its weights remember; 0 remembers all, which is best when nothing drifts.
    scale, fit_intercept, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* The update is that of `AROWRegressor` over an instance written as bin indicators, clipped scaled values
    and a constant; bins are those of `Additive`.

    *Cost.* O(present), about three times that of `AROWRegressor`.

    Examples
    --------
    >>> from varifold import AdditiveRegressor
    >>> model = AdditiveRegressor()
    >>> for step in range(600):
    ...     x = step * 7 % 100 / 100
    ...     model.learn_one({"load": x}, 50.0 if 0.375 < x < 0.625 else 10.0)
    >>> [round(model.predict_one({"load": x}), -1) for x in (0.1, 0.5, 0.9)]
    [10.0, 50.0, 10.0]

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "r": Real(0, open_low=True),
        "max_binned": Integer(1),
        "memory": Real(0),
    }

    r: float = 10.0
    max_binned: int = 20_000
    memory: float = 0.0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({}, {"memory": 100.0}, {"max_binned": 3, "scale": "minmax"})

    def _model(self) -> AdditiveRegression:
        return AdditiveRegression(AdditiveRule(self.r, self.max_binned, self.memory))
