"""PA: passive-aggressive learning."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.linear._pa import PARule
from varifold.linear.base import LinearClassifier


@declared
class PA(LinearClassifier):
    """Margin learner that changes its weights as little as each instance allows.

    The plainest of the margin learners, and a fast one: a baseline for all others.

    Parameters
    ----------
    C
        Aggressiveness (C > 0): cap of a step with ``"pa1"``, inverse softening with ``"pa2"``; without effect on
        ``"pa"``.
    mode
        ``"pa"`` always reaches the margin, ``"pa1"`` caps the step, ``"pa2"`` softens it.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* An absent feature counts as 0; the intercept is a constant feature. A sample weight
    multiplies C.

    *Cost.* O(present).

    Examples
    --------
    >>> from varifold import PA
    >>> model = PA()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer. Online passive-aggressive algorithms. JMLR 7, 2006.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
        "mode": OneOf("pa", "pa1", "pa2"),
    }

    C: float = 0.01
    mode: str = "pa1"

    def _rule(self) -> PARule:
        return PARule(self.mode, self.C)
