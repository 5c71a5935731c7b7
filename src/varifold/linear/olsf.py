"""OLSF: online learning from trapezoidal streams, with sparsity."""

from __future__ import annotations

from typing import ClassVar

from varifold._core.olsf import OLSFRule
from varifold.base.classifier import VaryingClassifier
from varifold.base.params import Boolean, Constraint, OneOf, Real


class OLSF(VaryingClassifier):
    """Passive-aggressive learner for feature sets that grow, which keeps a share of its weights only.

    Choose it when features keep coming and few of them matter: memory of weights stays at the share `B`.

    Parameters
    ----------
    C
        Aggressiveness (C > 0): cap of a step with ``"pa1"``, inverse softening with ``"pa2"``.
    lam
        Radius λ of the ℓ1 ball that the weights are projected on.
    B
        Share of the known features whose weights are kept, in (0, 1]; 1 keeps all.
    mode
        ``"pa"``, ``"pa1"`` or ``"pa2"``: OLSF, OLSF-I, OLSF-II.
    lean
        Whether scores lean to the commoner class for as long as it is right more often than they are.
    scale, fit_intercept, clip, max_features, evict
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* An absent feature counts as 0, so that streams may vary in any way. Truncation ranks
    by |w|. The intercept is a constant feature; it shares in the projection and is never truncated. A sample weight
    multiplies C.

    `lean` is not in the paper: it adds to the scores of an instance with intercept, never to the weights, and is off
    without intercept. On small or noisy sets it keeps the answers about as good as those of the class frequencies.

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
        "lean": Boolean(),
    }

    def __init__(
        self,
        C: float = 0.01,
        lam: float = 30.0,
        B: float = 1.0,
        mode: str = "pa1",
        lean: bool = True,
        *,
        scale: str = "standard",
        fit_intercept: bool = True,
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
    ) -> None:
        self.C = C
        self.lam = lam
        self.B = B
        self.mode = mode
        self.lean = lean
        super().__init__(scale=scale, fit_intercept=fit_intercept, clip=clip, max_features=max_features, evict=evict)

    def _model(self) -> OLSFRule:
        return OLSFRule(self.mode, self.C, self.lam, self.B, self.lean)
