"""AROW: adaptive regularisation of weight vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, OneOf, Real
from varifold.linear._arow import AROWRule
from varifold.linear.base import LinearClassifier


@declared
class AROW(LinearClassifier):
    """Second-order margin learner: each weight has its own confidence, so rare features learn fast.

    A strong default among the linear methods. The full covariance also learns which features replace one another,
    at a cost quadratic in the known features.

    Parameters
    ----------
    r
        Regularisation; larger is more cautious (r > 0).
    covariance
        ``"diagonal"`` or ``"full"``.
    max_dense
        With ``"full"``: most features with a full covariance; beyond, only the diagonal is kept, which `traits`
        reports.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* An absent feature counts as 0 in the products, so that its weight moves only through
    the covariance. r = 10 by default (the paper searches it).

    *Cost.* O(present) diagonal; O(known present + known^2) full.

    Examples
    --------
    >>> from varifold import AROW
    >>> model = AROW()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    K. Crammer, A. Kulesza, M. Dredze. Adaptive regularization of weight vectors. Machine Learning 91, 2013.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "r": Real(0, open_low=True),
        "covariance": OneOf("diagonal", "full"),
        "max_dense": Integer(1, 8192),
    }
    _cost = "O(present); covariance='full': O(known^2) up to max_dense"

    r: float = 10.0
    covariance: str = "diagonal"
    max_dense: int = 512

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({}, {"covariance": "full"}, {"scale": "none", "fit_intercept": False})

    def _rule(self) -> AROWRule:
        return AROWRule(self.r, self.max_dense if self.covariance == "full" else 0)
