"""AROWRegressor: adaptive regularisation of weight vectors, for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, OneOf, Real
from varifold.base.regressor import VaryingRegressor
from varifold.linear._arow import AROWRule
from varifold.linear._arowregressor import AROWRegression


@declared
class AROWRegressor(VaryingRegressor):
    """Second-order linear regressor: each weight has its own confidence, so rare features learn fast.

    A strong default among the linear regressors. The full covariance makes it recursive least squares: it learns which
    features replace one another, at a cost quadratic in the known features.

    Parameters
    ----------
    r
        Variance of the noise, the targets being of variance 1; larger is more cautious (r > 0).
    covariance
        ``"diagonal"`` or ``"full"``.
    max_dense
        With ``"full"``: most features with a full covariance; beyond, only the diagonal is kept, which `traits`
        reports.
    scale, fit_intercept, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *Deviations from the paper.* The weights predict the deviation from the running mean of the targets. An absent
    feature counts as 0 in the products, which is its mean when inputs are standardised, so that its weight moves only
    through the covariance. An error counts as 10^12 deviations of the targets at most. The diagonal form is that of
    `AROW`.

    *Cost.* O(present) diagonal; O(known present + known^2) full.

    Examples
    --------
    >>> from varifold import AROWRegressor
    >>> model = AROWRegressor()
    >>> for step in range(300):
    ...     heat, load = step % 7, step % 5
    ...     x = {"heat": heat, "load": load}
    ...     if step % 3 == 0:
    ...         del x["load"]  # the sensor dropped out
    ...     model.learn_one(x, 20.0 + 2.0 * heat + load)
    >>> round(model.predict_one({"heat": 6, "load": 0})), round(model.predict_one({"heat": 0}))
    (32, 22)

    References
    ----------
    N. Vaits, K. Crammer. Re-adapting the regularization of weights for non-stationary regression. ALT 2011 (AROWR).

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "r": Real(0, open_low=True),
        "covariance": OneOf("diagonal", "full"),
        "max_dense": Integer(1, 8192),
    }
    _cost = "O(present); covariance='full': O(known^2) up to max_dense"

    r: float = 1.0
    covariance: str = "diagonal"
    max_dense: int = 512

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({}, {"covariance": "full"}, {"scale": "none", "fit_intercept": False})

    def _model(self) -> AROWRegression:
        return AROWRegression(AROWRule(self.r, self.max_dense if self.covariance == "full" else 0))
