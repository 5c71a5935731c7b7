"""CopulaRegressor: the target as one more column of a Gaussian copula."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from varifold.base.blocks import to_block
from varifold.base.declared import declared
from varifold.base.learner import Instance, UnscaledLearner
from varifold.base.params import Constraint, Integer, OneOf
from varifold.base.regressor import VaryingRegressor
from varifold.copula._copularegressor import CopulaRegression, TargetCopula
from varifold.copula.parameters import CopulaParameters, settings_of
from varifold.errors import ParameterError


class Distribution(NamedTuple):
    """Predictive distribution of a target: ascending values and their probabilities."""

    mean: float
    deviation: float
    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def quantile(self, p: float) -> float:
        """Return the smallest value that the target does not exceed with probability p."""
        if not 0.0 <= p <= 1.0:
            raise ParameterError(f"p must be a probability between 0 and 1. Got {p!r} instead.")
        at = int(np.searchsorted(np.cumsum(self.probabilities), p - 1e-12))
        return float(self.values[min(at, len(self.values) - 1)])


@declared
class CopulaRegressor(CopulaParameters, UnscaledLearner, VaryingRegressor):
    """Predict the target from the present features in a Gaussian copula of features and target.

    Absent features need no imputation: the target is predicted given the others. Choose it if features are strongly
    correlated, if their units and distributions are unusual (only ranks matter), or if you need the complete predictive
    distribution: `predict_distribution_one`.

    Parameters
    ----------
    window
        Number of recent values from which the distribution of each feature and of the target is estimated (W >= 2).
    batch, levels, sweeps, c, gamma_min
        See `OVFM`.
    max_dense
        Maximum number of features under the copula; if there are more, it covers the recently most active ones.
    unlabelled
        What becomes of instances without a target (``learn_one(x, None)``): with ``"learn"`` the copula of the features
        learns them; with ``"ignore"`` nothing happens.
    max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* The copula is that of `OVFM` and `CopulaImputer`, with the target as a column that every learned
    instance has. With z_o the scores of what is present, the target's score is normal with mean m = S_yo S_oo^-1 z_o
    and variance s^2 = 1 - S_yo S_oo^-1 S_oy (plus the uncertainty of ordinal scores). The i-th of the n values in the
    target's window represents the scores between the normal quantiles of (i - 1/2) / (n + 1) and (i + 1/2) / (n + 1),
    or, if the window has at most `levels` distinct values, of (i - 1) / (n + 1) and i / (n + 1); the first and the last
    value represent the tails. The prediction is the mean of the window's values under these probabilities. It lies
    within the targets of the window: the method cannot extrapolate.

    *Without a target* (``unlabelled="learn"``) the instance is learned with the target as an absent value, and adds
    to the correlation of the features. The U instances without a target together weigh at most as much as
    the L with one. In the update of the correlation the moments M_r of row r have the step
    gamma_r = max(gamma_min, c / (k + c)) with k = (L of earlier updates) / batch, times min(1, L / U) if r has no
    target: S <- (1 - gamma) S + sum w_r gamma_r M_r / sum w_r, where gamma is the weighted mean of the gamma_r. The
    values of such an instance enter the windows with probability L / U, by a hash of the step, so that the windows of
    features and target span the same time. An empty instance, or one before the first target, changes nothing. If one
    feature nearly determines the target, the ranks of both are less exact so: keep ``"ignore"``.

    `explain_one` attributes to each column its terms of m, scaled by the effect of m on the prediction. The weight of a
    feature is the absolute correlation of its score with the target's.

    *Cost.* O(present³ + present² absent + present absent² + window); instances with the same present features share
    the inverse. O(max_dense²) memory.

    Examples
    --------
    >>> from varifold import CopulaRegressor
    >>> model = CopulaRegressor()
    >>> for step in range(400):
    ...     heat = (step * 37 % 100) / 10.0
    ...     x = {"heat": heat, "fan": "fast" if heat > 5 else "slow"}
    ...     del x["heat" if step % 3 == 0 else "fan"]
    ...     model.learn_one(x, 20.0 + 3.0 * heat)
    >>> hot = model.predict_distribution_one({"heat": 9.0})
    >>> 44 < hot.mean < 50, hot.deviation < 2 < model.predict_distribution_one({"fan": "fast"}).deviation
    (True, True)

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "max_dense": Integer(1, 8191),
        "unlabelled": OneOf("learn", "ignore"),
    }
    _cost = "O(present³ + present² absent + present absent²)"

    max_dense: int = 512
    unlabelled: str = "ignore"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"max_dense": 3, "batch": 7, "window": 40, "unlabelled": "learn"}

    def _model(self) -> CopulaRegression:
        copula = TargetCopula(**settings_of(self), max_dense=self.max_dense + 1)
        return CopulaRegression(copula, learn_unlabelled=self.unlabelled == "learn")

    def predict_distribution_one(self, x: Instance) -> Distribution:
        """Return the distribution of the target given the present features; its mean is ``predict_one(x)``."""
        mean = self._engine.predict_one(x)
        if not self.steps:
            return Distribution(0.0, 0.0, np.zeros(1), np.ones(1))
        values, chances = cast(CopulaRegression, self._engine.model).distribution()
        return Distribution(mean, float(np.sqrt(chances @ (values - mean) ** 2)), values, chances)

    def predict_distribution_many(self, X: Any) -> list[Distribution]:
        """Return `predict_distribution_one` for each instance."""
        return [self.predict_distribution_one(x) for x in to_block(X).rows()]
