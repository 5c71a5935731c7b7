"""OLSF: online learning from trapezoidal streams, with sparsity."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.linear._olsf import OLSFRule
from varifold.linear.base import LinearClassifier


@declared
class OLSF(LinearClassifier):
    """Passive-aggressive learner for feature sets that grow, which keeps a share of its weights only.

    Choose it when features keep coming and few of them matter: memory of weights stays at the share `B`.

    Parameters
    ----------
    C
        Aggressiveness (C > 0): cap of a step with ``"pa1"``, inverse softening with ``"pa2"``.
    lam
        Radius λ of the ℓ1 ball that the weights are projected on. In FOBOS and OVFIV `lam` is a penalty's strength.
    B
        Share of the known features whose weights are kept, in (0, 1]; 1 keeps all.
    mode
        ``"pa"``, ``"pa1"`` or ``"pa2"``: OLSF, OLSF-I, OLSF-II.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* An absent feature counts as 0, so that streams may vary in any way. Truncation ranks
    by ``|w|``. The intercept is a constant feature; it shares in the projection and is never truncated. A sample weight
    multiplies C.

    *Cost.* O(present); with B < 1 O(present log known): the projection is one factor for all weights, the truncation a
    heap.

    Examples
    --------
    >>> from varifold import OLSF
    >>> model = OLSF()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    Q. Zhang, P. Zhang, G. Long, W. Ding, C. Zhang, X. Wu. Online learning from trapezoidal data streams.
    IEEE Transactions on Knowledge and Data Engineering 28(10), 2016.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
        "lam": Real(0, open_low=True),
        "B": Real(0, 1, open_low=True),
        "mode": OneOf("pa", "pa1", "pa2"),
    }

    C: float = 0.01
    lam: float = 30.0
    B: float = 1.0
    mode: str = "pa1"

    def _rule(self) -> OLSFRule:
        return OLSFRule(self.mode, self.C, self.lam, self.B)
