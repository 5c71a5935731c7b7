"""MeanRegressor: the mean of the targets so far."""

from __future__ import annotations

from varifold._engine.models.regression import RegressionModel
from varifold.base.declared import declared
from varifold.base.regressor import VaryingRegressor


@declared
class MeanRegressor(VaryingRegressor):
    """Mean of the targets learned so far: the baseline that any other regressor has to beat.

    Parameters
    ----------
    scale, fit_intercept, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *Cost.* O(present): it keeps track of the features, and makes no use of them.

    Examples
    --------
    >>> from varifold import MeanRegressor
    >>> model = MeanRegressor()
    >>> for target in (1.0, 2.0, 6.0):
    ...     model.learn_one({"load": target}, target)
    >>> model.predict_one({"load": 100.0})
    3.0

    """

    _uses_values = False

    def _model(self) -> RegressionModel:
        return RegressionModel()
