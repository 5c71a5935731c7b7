"""OCDS: online learning from capricious data streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, Real
from varifold.linear._ocds import OCDSRule
from varifold.linear.base import LinearClassifier


@declared
class OCDS(LinearClassifier):
    """Linear learner that rebuilds absent features from those present by a feature graph it learns on the way.

    Choose it when features are related and come and go at random, and are a few hundred at most.

    Parameters
    ----------
    alpha
        Weight α of the reconstruction error (>= 0); not a learning rate, as `alpha` is in FTRLProximal.
    beta1, beta2
        Strength of the ℓ1 and of the graph-smoothness penalty on the weights (>= 0).
    gamma
        Share γ of the weights kept, in (0, 1].
    T
        Rounds between updates of the mix of observed and rebuilt part.
    max_dense
        Most features in the graph; those that come later are rebuilt from themselves alone, which `traits` reports.
    majority_bias, scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `varifold.linear.base.LinearClassifier`.

    Notes
    -----
    *Deviations from the paper.* Steps fall as 1 / √t and are cut where they would overshoot the square losses (by
    ‖ψ‖² for the weights, by ‖x‖² for the graph), without which raw-scale data drive the weights to infinity. The graph
    starts as the identity. The smoothness term uses the absolute, symmetric graph, as the printed Laplacian of a graph
    with negative links is no penalty. The intercept is an observed feature like others and is never truncated.

    *Cost.* O(present × known), up to `max_dense`; O(known²) with beta2 > 0. Memory O(known²) per label.

    Examples
    --------
    >>> from varifold import OCDS
    >>> model = OCDS()
    >>> for step in range(200):
    ...     model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0}, bool(step % 2))
    >>> model.predict_one({"pressure": 1}), model.predict_one({"pressure": 0})
    (True, False)

    References
    ----------
    Y. He, B. Wu, D. Wu, E. Beyazit, S. Chen, X. Wu. Online learning from capricious data streams: a generative
    approach. IJCAI 2019.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "alpha": Real(0),
        "beta1": Real(0),
        "beta2": Real(0),
        "gamma": Real(0, 1, open_low=True),
        "T": Integer(1),
        "max_dense": Integer(1, 8192),
    }
    _cost = "O(present * known), up to max_dense"

    alpha: float = 1.0
    beta1: float = 0.0
    beta2: float = 0.0
    gamma: float = 1.0
    T: int = 16
    max_dense: int = 512

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"gamma": 0.5, "beta1": 1e-3, "beta2": 1e-3, "max_dense": 4}

    def _rule(self) -> OCDSRule:
        return OCDSRule(self.alpha, self.beta1, self.beta2, self.gamma, self.T, self.max_dense)
