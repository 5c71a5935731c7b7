"""FESL: feature evolvable streaming learning."""

from __future__ import annotations

from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.evolving.base import EvolvingClassifier
from varifold.linear._ogd import OGDRule


@declared
class FESL(EvolvingClassifier):
    """Gradient descent through a switch of the feature space: an old model and a new one, mixed.

    Choose it for sensors that are replaced, when time per instance counts most: the update is one step of gradient
    descent. `CWFE` is the stronger sibling.

    Parameters
    ----------
    c
        Divides the step, 1 / (c sqrt t), t counted from the last switch (c > 0; the paper searches 1 to 150).
    part, combine, select, horizon, seed
        Which models run after a switch, and how they are mixed; see `varifold.evolving.base.EvolvingClassifier`.
    switch, overlap, ridge, settle, patience, max_dense
        The switch, if it is known, and how it is detected otherwise; the map from new to old features. See there.
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* The projection to a ball is left out.
    What holds for the whole family (detected switches, further switches, features that stay, scaling) is described at
    `varifold.evolving.base.EvolvingClassifier`. The paper's protocol is ``scale="none", fit_intercept=False`` with
    `switch`, `overlap` and `horizon` given.

    *Cost.* O(old x new) for the map after a switch, O(present) before.

    Examples
    --------
    >>> import random
    >>> from varifold import FESL
    >>> rng, model = random.Random(7), FESL()
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
    B.-J. Hou, L. Zhang, Z.-H. Zhou. Learning with feature evolvable streams. IEEE TKDE 33(6), 2021.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "c": Real(0, open_low=True),
    }
    _loss = "logistic"

    c: float = 1.0

    def _rule(self) -> OGDRule:
        return OGDRule(self.c)
