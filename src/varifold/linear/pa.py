"""PA: passive-aggressive learning."""

from __future__ import annotations

from typing import ClassVar

from varifold._core.pa import PARule
from varifold.base.classifier import VaryingClassifier
from varifold.base.params import Boolean, Constraint, OneOf, Real


class PA(VaryingClassifier):
    """Margin learner that changes its weights as little as the instance at hand allows.

    The plainest of the margin learners, and a fast one: a baseline for all others.

    Parameters
    ----------
    C
        Aggressiveness (C > 0): cap of a step with ``"pa1"``, inverse softening with ``"pa2"``; without effect on
        ``"pa"``.
    mode
        ``"pa"`` always reaches the margin, ``"pa1"`` caps the step, ``"pa2"`` softens it.
    lean
        Whether scores lean to the commoner class for as long as it is right more often than they are.
    scale, fit_intercept, clip, max_features, evict
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* An absent feature counts as 0; the intercept is a constant feature. A sample weight
    multiplies C.

    `lean` is not in the paper: it adds to the scores of an instance with intercept, never to the weights, and is off
    without intercept. On small or noisy sets it keeps the answers about as good as those of the class frequencies.

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
        "lean": Boolean(),
    }

    def __init__(
        self,
        C: float = 0.01,
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
        self.mode = mode
        self.lean = lean
        super().__init__(scale=scale, fit_intercept=fit_intercept, clip=clip, max_features=max_features, evict=evict)

    def _model(self) -> PARule:
        return PARule(self.mode, self.C, self.lean)
