"""OLIDS: online learning for incomplete and imbalanced data streams."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.linear._olids import OLIDSRule
from varifold.linear.base import LinearClassifier


@declared
class OLIDS(LinearClassifier):
    """Margin learner that trusts features by their share of variance and weighs classes by how rare they are.

    Choose it where one class is rare and features come and go in blocks.

    Parameters
    ----------
    C
        Cap of a step (C > 0).
    theta
        Cost θ: an instance's cap is C θ times the share of the other class so far (> 0).
    lam
        Radius λ of the projection, used when B < 1. In FOBOS and OVFIV `lam` is the strength of a penalty.
    B
        Share of the known features whose weights are kept, in (0, 1].
    indicator_rows
        Rows over which the indicator of a string value varies: ``"column"``, those that hold its column, where it is 0
        when the column holds another value (with ``scale="robust"`` or ``"standard"`` it is standardised over them, as
        numbers are); ``"own"``, those that hold the value, as earlier builds had it (such an indicator never varies, so
        that only the values of the round before count).
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* The cost is on the cap, where the objective has it. Returning features keep their
    weights. Variances are Welford's, over the values as the learner sees them, this instance's counted in. An observed
    zero is a value. The intercept counts as a feature that stayed, the indicator of a string value when its column
    stayed.

    *Cost.* O(present); with B < 1 O(present log known), with string columns O(known).

    Examples
    --------
    >>> from varifold import OLIDS
    >>> model = OLIDS()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    D. You et al. Online learning from incomplete and imbalanced data streams. IEEE Transactions on Knowledge and Data
    Engineering, 2023.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
        "theta": Real(0, open_low=True),
        "lam": Real(0, open_low=True),
        "B": Real(0, 1, open_low=True),
        "indicator_rows": OneOf("column", "own"),
    }

    C: float = 0.01
    theta: float = 8.0
    lam: float = 30.0
    B: float = 1.0
    indicator_rows: str = "column"

    def _rule(self) -> OLIDSRule:
        by_column = self.indicator_rows == "column"
        clip = self.clip if by_column and self.scale in ("standard", "robust") else 0.0
        return OLIDSRule(self.C, self.theta, self.lam, self.B, by_column, clip)
