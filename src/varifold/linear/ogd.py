"""OGD: online gradient descent."""

from __future__ import annotations

from typing import ClassVar

from varifold._core.ogd import OGDRule
from varifold.base.classifier import VaryingClassifier
from varifold.base.params import Boolean, Constraint, Real


class OGD(VaryingClassifier):
    """Logistic learner that steps down the gradient by 1 / (c √t).

    The learner inside FESL, and a baseline. Its step is the same for every feature and falls with the rounds, so that
    features that come late learn slowly; `AROW` and `FTRLProximal` give each feature a step of its own.

    Parameters
    ----------
    c
        Slowness: the step of round t is 1 / (c √t) (c > 0).
    lean
        Whether scores lean to the commoner class for as long as it is right more often than they are.
    scale, fit_intercept, clip, max_features, evict
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* FESL's loss, log2(1 + e^(-y f)), without its projection on a ball. An absent feature
    counts as 0. A sample weight multiplies the gradient.

    `lean` is not in the paper: it adds to the scores of an instance with intercept, never to the weights, and is off
    without intercept. On small or noisy sets it keeps the answers about as good as those of the class frequencies.

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
        "lean": Boolean(),
    }

    def __init__(
        self,
        c: float = 10.0,
        lean: bool = True,
        *,
        scale: str = "standard",
        fit_intercept: bool = True,
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
    ) -> None:
        self.c = c
        self.lean = lean
        super().__init__(scale=scale, fit_intercept=fit_intercept, clip=clip, max_features=max_features, evict=evict)

    def _model(self) -> OGDRule:
        return OGDRule(self.c, self.lean)
