"""FOBOS: forward-backward splitting."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.linear._fobos import FOBOSRule
from varifold.linear.base import LinearClassifier


@declared
class FOBOS(LinearClassifier):
    """Gradient learner whose weights are shrunk to zero after every step, so that weak features drop out.

    A sparse baseline. Its rate falls for all features alike; `FTRLProximal` is sparse with a rate for each.

    Parameters
    ----------
    eta
        Learning rate η0: the step of round t is η0 / √t (> 0). In OVFIV and OVFM `eta` is the rate of a mixture.
    lam
        Strength λ of the ℓ1 shrinkage (>= 0). In OLVF, OLSF and OLIDS `lam` is the radius of a projection.
    loss
        ``"logistic"`` or ``"hinge"``.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* The intercept is not shrunk. New features start at 0. A sample weight multiplies
    the gradient.

    *Cost.* O(present): the shrinkage of absent features is applied when they are next present.

    Examples
    --------
    >>> from varifold import FOBOS
    >>> model = FOBOS()
    >>> for step in range(100):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    J. Duchi, Y. Singer. Efficient learning using forward-backward splitting. NeurIPS 2009.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "eta": Real(0, open_low=True),
        "lam": Real(0),
        "loss": OneOf("logistic", "hinge"),
    }

    eta: float = 0.1
    lam: float = 1e-3
    loss: str = "logistic"

    def _rule(self) -> FOBOSRule:
        return FOBOSRule(self.eta, self.lam, self.loss == "hinge")
