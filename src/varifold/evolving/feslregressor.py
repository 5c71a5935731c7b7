"""FESLRegressor: feature evolvable streaming learning, for regression."""

from __future__ import annotations

from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Real
from varifold.base.regressor import VaryingRegressor
from varifold.evolving._evolving import EvolvingModel
from varifold.evolving._feslregressor import EvolvingRegression, FESLRegression
from varifold.evolving.base import Switching
from varifold.linear._ogd import OGDRule


@declared
class FESLRegressor(Switching, VaryingRegressor):
    """Gradient descent on squared errors through a switch of the feature space: an old model and a new one, mixed.

    Choose it for sensors that are replaced by others after a while in which both are seen, when time per instance
    counts most.

    Parameters
    ----------
    c
        Divides the step, 1 / (c sqrt t), t counted from the last switch (c > 0; the paper searches 1 to 150).
    combine, select, horizon, seed
        How old and new model are mixed: ``combine="c"`` (FESL-c) takes the weighted mean of their predictions, ``"s"``
        (FESL-s) one of them (`select`: ``"draw"`` or ``"argmax"``); `horizon` is the number of learns after the switch
        (T2) when known. See `varifold.evolving.base.EvolvingClassifier`.
    switch, overlap
        Learns before only new features come (T1), and how many of them show old and new ones together (B), when they
        are known. By default the learner detects them.
    ridge, settle, patience, max_dense
        See `varifold.evolving.base.EvolvingClassifier`.
    scale, fit_intercept, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    With f the score of a model and y the deviation of the target from the mean of all so far, a step is

        w += 2 (y - f) x / (c sqrt t).

    After the switch the old model sees the old features as the map recovers them from the new ones, a new one starts
    from zero on what is seen, and both learn. Their weights are exp(-eta L), L the summed losses, with the rates of the
    paper: eta = sqrt(8 ln 2 / T2) for FESL-c; FESL-s shares weight so that it can follow a change of the better one.

    *Deviations from the paper.* No projection to a ball; instead a step goes no further than to where the error
    vanishes, 1 / (x x). The loss that the mixture goes by is the squared error over that of two deviations of the
    targets, at most 1, as the bound requires losses in [0, 1]. What holds for the whole family (detected switches,
    further switches, features that stay, scaling) is described at `varifold.evolving.base.EvolvingClassifier`. The
    paper's protocol is ``scale="none", fit_intercept=False`` with `switch`, `overlap` and `horizon` given.

    *Cost.* O(old x new) for the map after a switch, O(present) before.

    Examples
    --------
    >>> import random
    >>> from varifold import FESLRegressor
    >>> rng, model = random.Random(7), FESLRegressor()
    >>> def instance(sees):
    ...     a, b = rng.gauss(0, 1), rng.gauss(0, 1)
    ...     both = {"old a": a, "old b": b, "new 1": a + b, "new 2": a - b}
    ...     return {name: x for name, x in both.items() if sees in name or sees == "both"}, 20 + 10 * a - 5 * b
    >>> for sees in ["old"] * 400 + ["both"] * 20 + ["new"] * 5:
    ...     model.learn_one(*instance(sees))
    >>> len(model.switches), model.features["old a"].role
    (1, 'mapped')
    >>> 22 < model.predict_one({"new 1": 1.0, "new 2": 1.0}) < 38
    True

    References
    ----------
    B.-J. Hou, L. Zhang, Z.-H. Zhou. Learning with feature evolvable streams. NIPS 2017; IEEE TKDE 33(6), 2021.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"c": Real(0, open_low=True)}
    _paper: ClassVar[dict[str, Any]] = {"scale": "none", "fit_intercept": False}
    _cost = "O(old x new features)"

    c: float = 1.0

    def _model(self) -> FESLRegression:
        return FESLRegression(EvolvingRegression(OGDRule(self.c), OGDRule(self.c), **self._settings()))

    @property
    def _evolving(self) -> EvolvingModel:
        model = self._engine.model
        assert isinstance(model, FESLRegression)
        return model.evolving
