"""CopulaRegressor: the target as one more column of a Gaussian copula."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from varifold.base.blocks import to_block
from varifold.base.declared import UnscaledRegressor, declared
from varifold.base.learner import Instance
from varifold.base.params import Constraint, Integer
from varifold.copula._copularegressor import CopulaRegression
from varifold.copula.base import CopulaParameters, copula_of
from varifold.errors import ParameterError


class Distribution(NamedTuple):
    """What a target is expected to be: values, ascending, and their probabilities."""

    mean: float
    deviation: float
    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def quantile(self, p: float) -> float:
        """The smallest value that the target does not exceed with probability p."""
        if not 0.0 <= p <= 1.0:
            raise ParameterError(f"a quantile is of a probability from 0 to 1. Got {p!r} instead.")
        at = int(np.searchsorted(np.cumsum(self.probabilities), p - 1e-12))
        return float(self.values[min(at, len(self.values) - 1)])


@declared
class CopulaRegressor(CopulaParameters, UnscaledRegressor):
    """The target given whatever is present, in a Gaussian copula of features and target.

    Features that are absent need no stand-in: the target is predicted given the others. Choose it when features say
    much about one another, when their units and shapes are odd (only ranks count), and when the whole distribution of
    the target is wanted: `predict_distribution_one`.

    Parameters
    ----------
    window
        Most recent values of each feature, and of the target, that its distribution is estimated from (W >= 2).
    batch, levels, sweeps, c, gamma_min
        See `OVFM`.
    max_dense
        Most features under the copula; when there are more, it covers the recently most active ones.
    max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* The copula is that of `OVFM` and `CopulaImputer`, with the target as a column that every learned
    instance has. With z_o the scores of what is present, the target's score is normal with mean m = S_yo S_oo^-1 z_o
    and variance s^2 = 1 - S_yo S_oo^-1 S_oy (and what ordinal features leave open). The i-th of the n values in the
    target's window stands for the scores between the normal quantiles of (i - 1/2) / (n + 1) and (i + 1/2) / (n + 1),
    or, when they have at most `levels` different values, of (i - 1) / (n + 1) and i / (n + 1); the first and the last
    for all beyond. The prediction is the mean of the window's values by these probabilities. So it lies within the
    targets of the window: it cannot extrapolate.

    `explain_one` gives every column its terms of m, stretched by what m moves the prediction. The weight of a feature
    is the size of its score's correlation with the target's.

    *Cost.* O(present³ + present² absent + present absent² + window); instances with the same features present share
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
    >>> found = model.predict_distribution_one({"heat": 9.0})
    >>> 44 < found.mean < 50, found.deviation < 2 < model.predict_distribution_one({"fan": "fast"}).deviation
    (True, True)

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"max_dense": Integer(1, 8191)}
    _cost = "O(present³ + present² absent + present absent²)"

    max_dense: int = 512

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"max_dense": 3, "batch": 7, "window": 40}

    def _model(self) -> CopulaRegression:
        return CopulaRegression(copula_of(self, self.max_dense + 1))

    def predict_distribution_one(self, x: Instance) -> Distribution:
        """The distribution of the target given what is present; its mean is ``predict_one(x)``. Changes nothing."""
        mean = self._engine.predict_one(x)
        if not self.steps:
            return Distribution(0.0, 0.0, np.zeros(1), np.ones(1))
        values, chances = cast(CopulaRegression, self._engine.model).distribution()
        return Distribution(mean, float(np.sqrt(chances @ (values - mean) ** 2)), values, chances)

    def predict_distribution_many(self, X: Any) -> list[Distribution]:
        """What `predict_distribution_one` gives for each instance."""
        return [self.predict_distribution_one(x) for x in to_block(X).rows()]
