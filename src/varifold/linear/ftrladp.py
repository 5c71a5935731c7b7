"""FTRL-ADP: follow the regularised leader, with adaptive decay and drift detection."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Boolean, Constraint, Integer, Real
from varifold.linear._ftrladp import FTRLADPRule
from varifold.linear.base import LinearClassifier


@declared
class FTRLADP(LinearClassifier):
    """Logistic learner pulled to a decaying average of its past weights, which is reset when its errors drift.

    The base learner of OVFM and the "Naive" learner of OVFIV's tables. Choose it where probabilities matter and the
    stream may change.

    Parameters
    ----------
    L1, L2
        Strength of the ℓ1 and ℓ2 penalties (>= 0). With either of them > 0 a round costs O(known).
    LP
        Strength of the pull to the past weights (> 0).
    decay
        How long the past is remembered after T rounds without drift: λ = 1 - T^(-1/3) (0), 1 - T^(-1/2) (1),
        1 - 1/T (2), T / (T + 1) (3) or 1 - ln T / (2 T) (4).
    kappa
        Share κ of the error rate in λ, in [0, 1].
    per_coordinate
        Whether each feature remembers by its own rounds: only those in which it was present count. A new feature then
        learns fast at any age of the model.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* L1 = L2 = 0 by default, as the code of OVFM has it. The error rate in the drift test is
    (F + 1) / (T + 2), so that few errors do not look like drift. Absent features count as 0, and their weights move
    to the past average all the same, in closed form. A sample weight multiplies the gradient.

    *Cost.* O(present); O(known) with L1 or L2 > 0 unless `per_coordinate`.

    Examples
    --------
    >>> from varifold import FTRLADP
    >>> model = FTRLADP()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    N. A. Huynh, W. K. Ng, K. Ariyapala. Learning under concept drift with follow the regularized leader and adaptive
    decaying proximal. Expert Systems with Applications 96, 2018.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "L1": Real(0),
        "L2": Real(0),
        "LP": Real(0, open_low=True),
        "decay": Integer(0, 4),
        "kappa": Real(0, 1),
        "per_coordinate": Boolean(),
    }
    _cost = "O(present); with L1 or L2 > 0 and not per_coordinate: O(known)"

    L1: float = 0.0
    L2: float = 0.0
    LP: float = 1.0
    decay: int = 4
    kappa: float = 0.01
    per_coordinate: bool = False

    def _rule(self) -> FTRLADPRule:
        return FTRLADPRule(self.L1, self.L2, self.LP, self.decay, self.kappa, self.per_coordinate)
