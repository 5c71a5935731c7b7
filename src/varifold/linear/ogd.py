"""OGD: online gradient descent."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.linear._ogd import OGDRule
from varifold.linear.base import LinearClassifier


@declared
class OGD(LinearClassifier):
    """Logistic learner that steps down the gradient by 1 / (c √t).

    The learner inside FESL, and a baseline. Its step is the same for every feature and falls with the rounds, so that
    features that come late learn slowly; `AROW` and `FTRLProximal` have a step size per feature.

    Parameters
    ----------
    c
        The step of round t is 1 / (c √t) (c > 0) on the loss in bits, so a larger c learns more slowly. In OVFM `c`
        belongs to the copula.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* FESL's loss, log2(1 + e^(-y f)), without its projection on a ball. An absent feature
    counts as 0. A sample weight multiplies the gradient.

    *Cost.* O(present).

    Examples
    --------
    >>> from varifold import OGD
    >>> model = OGD()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    B.-J. Hou, L. Zhang, Z.-H. Zhou. Learning with feature evolvable streams. NeurIPS 2017.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "c": Real(0, open_low=True),
    }

    c: float = 10.0

    def _rule(self) -> OGDRule:
        return OGDRule(self.c)
