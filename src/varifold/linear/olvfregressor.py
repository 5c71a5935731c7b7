"""OLVFRegressor: online learning from varying features, for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.base.regressor import VaryingRegressor
from varifold.linear._olvf import OLVFRule
from varifold.linear._olvfregressor import OLVFRegression


@declared
class OLVFRegressor(VaryingRegressor):
    """Epsilon-insensitive regressor whose step is weighted by a learned confidence in the feature set present.

    There are two linear models: one on the values (the regressor), one on which features are present (the
    confidence that such a feature set improves on the mean of the targets). Steps are capped, so that an outlier among
    the targets moves the weights no more than any other instance. Choose it when memory and time per instance must
    stay as small as the instance; `B` < 1 keeps only that share of the weights.

    Parameters
    ----------
    C
        Cap of a step of the regressor, in deviations of the target (C > 0).
    C_bar
        Cap of a step of the feature-set model (C̄ > 0).
    epsilon
        Errors up to this many deviations of the target cost nothing (epsilon >= 0).
    lam
        Radius λ of the projection in deviations of the target, used when B < 1.
    B
        Share of the known features whose weights are kept, in (0, 1]; 1 is the dense form.
    variant
        ``"kkt"`` divides by the confidences, as the paper's objective requires; ``"printed"`` multiplies, as printed.
    scale, fit_intercept, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *Deviations from the paper.* The paper classifies: here the loss is max(0, ``|e|`` - epsilon) of the error e in
    deviations of the target, and a prediction counts as correct for the feature-set model when it is at least as near
    as the mean of the targets. Otherwise as `OLVF`. The weights predict the deviation from that mean.

    *Cost.* O(present); with B < 1 O(present log known).

    Examples
    --------
    >>> from varifold import OLVFRegressor
    >>> model = OLVFRegressor()
    >>> for step in range(600):
    ...     heat, load = step % 7, step % 5
    ...     x = {"heat": heat, "load": load}
    ...     if step % 3 == 0:
    ...         del x["load"]  # the sensor dropped out
    ...     model.learn_one(x, 20.0 + 2.0 * heat + load)
    >>> abs(model.predict_one({"heat": 6, "load": 2}) - 34.0) < 1.0
    True

    References
    ----------
    E. Beyazit, J. Alagurajah, X. Wu. Online learning from data streams with varying feature spaces. AAAI 2019.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
        "C_bar": Real(0, open_low=True),
        "epsilon": Real(0),
        "lam": Real(0, open_low=True),
        "B": Real(0, 1, open_low=True),
        "variant": OneOf("kkt", "printed"),
    }

    C: float = 0.01
    C_bar: float = 1e-3
    epsilon: float = 0.05
    lam: float = 30.0
    B: float = 1.0
    variant: str = "kkt"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({}, {"B": 0.5, "C": 0.05}, {"variant": "printed", "C": 0.1, "clip": 2.0})

    def _model(self) -> OLVFRegression:
        return OLVFRegression(OLVFRule(self.C, self.C_bar, self.lam, self.B, self.variant == "kkt"), self.epsilon)
