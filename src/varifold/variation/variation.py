"""Variation: OVFIV's learner of which features are absent, on its own."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.naive_bayes._frequency import FrequencyModel
from varifold.variation._ovfiv import OVFIVModel


@declared
class Variation(VaryingClassifier):
    """Sparse linear learner that sees only which features are absent: the variation classifier of OVFIV alone.

    A test of the information in absence itself; `OVFIV` adds it to a learner on the values.

    Parameters
    ----------
    lam
        Strength λ of the ℓ1 penalty (>= 0); larger listens to fewer absences.
    alpha, beta, L2
        Rate and ℓ2 penalty (FTRL-Proximal).
    encode
        ``"absence"``, ``"presence"`` or ``"auto"``; see `OVFIV`.
    fit_intercept
        Whether it has an unpenalised bias; the paper's has none. Without it ``encode="auto"`` stays with absence.
    scale, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`; `scale` and `clip` are without effect.

    Notes
    -----
    Margins are 2 p - 1, p the probability (1 + f) / 2 of the learner's score f, cut to [0, 1].

    *Deviations from the paper.* Those of the variation learner in `OVFIV`.

    *Cost.* O(known) with ``"absence"``, O(present) with ``"presence"``, for each label beyond two.

    Examples
    --------
    >>> from varifold import Variation
    >>> model = Variation(lam=0.1)
    >>> for step in range(200):
    ...     ill = step % 2 == 0
    ...     model.learn_one({"age": 30 + step % 40, **({"x-ray": 1.0} if ill and step % 8 else {})}, ill)
    >>> model.predict_one({"age": 50}), model.predict_one({"age": 50, "x-ray": 1.0})
    (False, True)

    References
    ----------
    P. Qin, L. Song. Online learning in varying feature spaces with informative variation. IIP 2024; here a longer text
    under review.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "lam": Real(0),
        "alpha": Real(0, open_low=True),
        "beta": Real(0),
        "L2": Real(0),
        "encode": OneOf("auto", "absence", "presence"),
    }
    _paper: ClassVar[dict[str, Any]] = {"encode": "absence", "fit_intercept": False}
    _cost = "with encode='absence' O(known), with 'presence' O(present)"
    _uses_absence = True
    _uses_values = False

    lam: float = 1.0
    alpha: float = 0.1
    beta: float = 1.0
    L2: float = 0.0
    encode: str = "auto"
    _: KW_ONLY
    scale: str = "none"

    def _model(self) -> OVFIVModel:
        return OVFIVModel(
            FrequencyModel(),
            "anytime",
            0.0,
            self.lam,
            self.alpha,
            self.beta,
            self.L2,
            self.encode,
            self.fit_intercept,
            True,
        )
