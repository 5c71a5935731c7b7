"""PAFE: passive-aggressive learning with feature evolution."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.evolving.base import EvolvingClassifier
from varifold.linear._pa import PARule


@declared
class PAFE(EvolvingClassifier):
    """Passive-aggressive learning through a switch of the feature space: an old model and a new one, mixed.

    Choose it for sensors that are replaced, when predictions right after the switch matter: the new model starts from
    the old one's weights, taken through the map.

    Parameters
    ----------
    C
        Cap of a step (C > 0).
    part, combine, select, horizon, seed
        Which models run after a switch, and how they are mixed; see `varifold.evolving.base.EvolvingClassifier`.
    switch, overlap, ridge, settle, patience, max_dense
        The switch, if it is known, and how it is detected otherwise; the map from new to old features. See there.
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* The new model starts at w2 = M w1, which predicts as the old one does
    through the map; with scaled inputs each weight is also multiplied by the spread its feature had in the overlap.
    The step is PA-I, as the variant is not stated.
    What holds for the whole family (detected switches, further switches, features that stay, scaling) is described at
    `varifold.evolving.base.EvolvingClassifier`. The paper's protocol is ``scale="none", fit_intercept=False`` with
    `switch`, `overlap` and `horizon` given.

    *Cost.* O(old x new) for the map after a switch, O(present) before.

    Examples
    --------
    >>> import random
    >>> from varifold import PAFE
    >>> rng, model = random.Random(7), PAFE()
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
    Y. Liu, W. Li, Y. Gao. Passive-aggressive learning with feature evolvable streams. Journal of Computer Research and
    Development 58(8), 2021 (in Chinese). Built from its description in the paper of CWFE.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
    }
    _loss = "hinge"
    _transfer = True

    C: float = 0.1

    def _rule(self) -> PARule:
        return PARule("pa1", self.C)
