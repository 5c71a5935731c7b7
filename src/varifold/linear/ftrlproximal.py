"""FTRL-Proximal: follow the proximally regularised leader."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.linear._ftrl import FTRLProximalRule
from varifold.linear.base import LinearClassifier


@declared
class FTRLProximal(LinearClassifier):
    """Logistic learner with a rate per feature, and weights that are exactly 0 where little is known.

    The standard for streams of many rare features, clicks and text above all. With `L1` > 0 features that carry nothing
    keep the weight 0.

    Parameters
    ----------
    alpha, beta
        A feature whose squared gradients sum to n moves at the rate α / (β + √n) (α > 0, β >= 0).
    L1, L2
        Strength of the penalties (>= 0); the intercept is free of L1.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* None but the intercept. A sample weight multiplies the gradient.

    *Cost.* O(present).

    Examples
    --------
    >>> from varifold import FTRLProximal
    >>> model = FTRLProximal()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    H. B. McMahan et al. Ad click prediction: a view from the trenches. KDD 2013.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "alpha": Real(0, open_low=True),
        "beta": Real(0),
        "L1": Real(0),
        "L2": Real(0),
    }

    alpha: float = 0.1
    beta: float = 1.0
    L1: float = 0.0
    L2: float = 0.0

    def _rule(self) -> FTRLProximalRule:
        return FTRLProximalRule(self.alpha, self.beta, self.L1, self.L2)
