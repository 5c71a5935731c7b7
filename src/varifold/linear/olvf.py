"""OLVF: online learning from varying features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, cast

from varifold.base.declared import declared
from varifold.base.params import Constraint, OneOf, Real
from varifold.linear._olvf import OLVFRule
from varifold.linear.base import LinearClassifier


class Confidences(NamedTuple):
    """Projection confidences of OLVF, between 0 and 1."""

    instance: float
    """p_x: how well an instance's features separate the labels, by the space classifier."""
    classifier: float
    """p_w: the same for all features known."""
    space_margin: float
    """Score of the instance by the space classifier; after a correct prediction its loss is log(1 + exp(-margin))."""


def _sigmoid(f: float) -> float:
    return 1.0 / (1.0 + math.exp(-f)) if f > -700.0 else 0.0


@declared
class OLVF(LinearClassifier):
    """Margin learner whose step is weighted by a learned confidence in the feature set present.

    There are two linear models: one on the values (the classifier), one on which features are present (the
    confidence in such a feature set). Choose it for arbitrary varying features when memory and time per instance
    must stay as small as the instance; `B` < 1 keeps only that share of the weights.

    Parameters
    ----------
    C
        Cap of a step of the classifier (C > 0).
    C_bar
        Cap of a step of the feature-set model (C̄ > 0).
    lam
        Radius λ of the projection, used when B < 1. In FOBOS and OVFIV `lam` is the strength of a penalty.
    B
        Share of the known features whose weights are kept, in (0, 1]; 1 is the dense form.
    variant
        ``"kkt"`` divides by the confidences, as the paper's objective requires; ``"printed"`` multiplies, as printed.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* Eq. 2-4: the indicator is ±1, so that mistakes update the weights. Eq. 7: the gradient
    is that of eq. 4; the logarithms printed there are spurious. Eq. 7-10: steps go down the gradient. Eq. 12-15: the
    default follows the stationarity of eq. 12 (divide by the confidence); `variant="printed"` multiplies. Eq. 16:
    absolute values, and only when the sum exceeds λ. Truncation ranks by ``|w|``. An instance without any known feature
    is predicted by the class frequencies and updates only those. The intercept takes part like a constant feature that
    is never truncated. An indicator `f=v` has its own space weight.

    The paper leaves more than two labels to a reduction to binary problems. Here it is one versus rest; for one versus
    one wrap it: ``river.multiclass.OneVsOneClassifier(OLVF())``, on the command line ``--model
    "river.multiclass:OneVsOneClassifier:classifier=(olvf)"``.

    *Cost.* O(present); with B < 1 O(present log known): the projection is one factor for all weights, the truncation
    a heap.

    Examples
    --------
    >>> from varifold import OLVF
    >>> model = OLVF()
    >>> for step in range(200):
    ...     hot = step % 2 == 0
    ...     x = {"temperature": 30.0 if hot else 10.0, "night": 0.0 if hot else 1.0}
    ...     if step % 3 == 0:
    ...         del x["temperature"]  # the sensor dropped out
    ...     model.learn_one(x, "hot" if hot else "cold")
    >>> model.predict_one({"temperature": 28.0}), model.predict_one({"night": 1.0})
    ('hot', 'cold')

    References
    ----------
    E. Beyazit, J. Alagurajah, X. Wu. Online learning from data streams with varying feature spaces. AAAI 2019.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "C": Real(0, open_low=True),
        "C_bar": Real(0, open_low=True),
        "lam": Real(0, open_low=True),
        "B": Real(0, 1, open_low=True),
        "variant": OneOf("kkt", "printed"),
    }
    _paper: ClassVar[dict[str, Any]] = {"variant": "printed"}

    C: float = 0.01
    C_bar: float = 1e-3
    lam: float = 30.0
    B: float = 1.0
    variant: str = "kkt"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ({}, {"B": 0.5}, {"variant": "printed", "scale": "minmax", "C": 1.0})

    def confidences_one(self, x: Mapping[Any, Any]) -> Confidences:
        """Return the space classifier's confidence in the features of an instance, and in those that have weights.

        With more than two labels these are the confidences of the first label's problem.
        """
        space = self._engine.space
        names = [f"{name}={value}" if isinstance(value, str) else name for name, value in x.items()]
        slots = [slot for slot in map(space.id_of, names) if slot > 0]
        model = self._engine.model
        rule = cast(OLVFRule, getattr(model, "rule", model))
        of_instance, of_all = rule.space_score(slots)
        return Confidences(_sigmoid(of_instance), _sigmoid(of_all), of_instance)

    def _rule(self) -> OLVFRule:
        return OLVFRule(self.C, self.C_bar, self.lam, self.B, self.variant == "kkt")
