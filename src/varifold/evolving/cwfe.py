"""CWFE: confidence-weighted learning with feature evolution."""

from __future__ import annotations

from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.evolving.base import EvolvingClassifier
from varifold.linear._arow import AROWRule


@declared
class CWFE(EvolvingClassifier):
    """Confidence-weighted learning through a switch of the feature space: an old model and a new one, mixed.

    Choose it for sensors that are replaced. While old and new ones are both seen it learns how the old follow from
    the new; afterwards the model that knows the old ones continues with recovered values next to a new model, and their
    mixture follows whichever errs less. The learner detects when features join and go, as often as it
    happens.

    Parameters
    ----------
    r
        Regularisation of AROW (the paper's γ > 0, which is .1 there; see the notes).
    covariance
        ``"full"`` as in the paper, or ``"diagonal"``.
    part, combine, select, horizon, seed
        Which models run after a switch, and how they are mixed; see `varifold.evolving.base.EvolvingClassifier`.
    switch, overlap, ridge, settle, patience, max_dense
        The switch, if it is known, and how it is detected otherwise; the map from new to old features. See there.
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* Eq. 6: the inverse does not exist for short overlaps; the map is the
    least-squares solution of least norm. Eq. 8: the weights of the round before. The paper's r = .1 lets a new model
    follow its first instances too closely; 3 was better on most streams tried (decision 0068).
    What holds for the whole family (detected switches, further switches, features that stay, scaling) is described at
    `varifold.evolving.base.EvolvingClassifier`. The paper's protocol is ``r=0.1, scale="none", fit_intercept=False``
    with `switch`, `overlap` and `horizon` given.

    *Cost.* O(old x new) for the map after a switch, and O(old^2 + new^2) for full covariances.

    Examples
    --------
    >>> import random
    >>> from varifold import CWFE
    >>> rng, model = random.Random(7), CWFE()
    >>> def instance(sees):
    ...     a, b = rng.gauss(0, 1), rng.gauss(0, 1)
    ...     both = {"old a": a, "old b": b, "new 1": a + b, "new 2": a - b}
    ...     return {name: x for name, x in both.items() if sees in name or sees == "both"}, a > 0.5 * b
    >>> for sees in ["old"] * 200 + ["both"] * 20 + ["new"] * 5:
    ...     model.learn_one(*instance(sees))
    >>> len(model.switches), model.features["old a"].role
    (1, 'mapped')
    >>> model.predict_one({"new 1": 1.0, "new 2": 2.0})
    True

    References
    ----------
    Y. Liu, W. Li, Y. Gao. Confidence-weighted learning for feature evolution. Journal of Software 33(4), 2022 (in
    Chinese).

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "r": Real(0, open_low=True),
        "covariance": OneOf("full", "diagonal"),
    }
    _paper: ClassVar[dict[str, Any]] = {"r": 0.1}
    _loss = "hinge"

    r: float = 3.0
    covariance: str = "full"

    def _rule(self) -> AROWRule:
        return AROWRule(self.r, self.max_dense if self.covariance == "full" else 0)
