"""NB3: naive Bayes over feature presence."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.naive_bayes._nb3 import NB3Model


@declared
class NB3(VaryingClassifier):
    """Naive Bayes on which features are present, restricted to those that separate the classes best.

    A cheap baseline for text-like streams, and a test of whether absence carries information: values are ignored.

    Parameters
    ----------
    M
        Share of the present features that are used, those of largest χ² first, in (0, 1].
    prior
        Instances added to every feature, with the classes' shares, and to every class (> 0).
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    Scores are log prior + Σ log P(present | class) / P(present). Without intercept the classes count as equally
    frequent; `scale` and `clip` are without effect.

    *Deviations from the paper.* The best share is taken among the features present, not among all, which would cost
    O(known) per prediction. The paper does not smooth; here `prior` instances with the classes' shares smooth
    P(class | present), so that rare features do not favour the rarest class.

    *Cost.* O(present × labels); with M < 1 O(present log present) more.

    Examples
    --------
    >>> from varifold import NB3
    >>> model = NB3()
    >>> for step in range(40):
    ...     model.learn_one({"the": 1, "goal" if step % 2 else "vote": 1}, "sport" if step % 2 else "politics")
    >>> model.predict_one({"the": 1, "goal": 2}), model.predict_one({"vote": 1})
    ('sport', 'politics')

    References
    ----------
    I. Katakis, G. Tsoumakas, I. Vlahavas. On the utility of incremental feature selection for the classification of
    textual data streams. PCI 2005.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "M": Real(0, 1, open_low=True),
        "prior": Real(0, open_low=True),
    }
    _paper: ClassVar[dict[str, Any]] = {"scale": "none"}
    _cost = "O(present * labels)"
    _native_multiclass = True
    _uses_absence = True
    _uses_values = False

    M: float = 1.0
    prior: float = 1.0
    _: KW_ONLY
    scale: str = "none"

    def _model(self) -> NB3Model:
        return NB3Model(self.prior, self.M)
