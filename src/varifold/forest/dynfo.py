"""DynFo: a dynamic forest of decision stumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

from varifold.base.classifier import Name
from varifold.base.declared import UnscaledClassifier, declared
from varifold.base.estimator import undisturbed
from varifold.base.params import AnyOf, Constraint, Integer, Real
from varifold.forest._dynfo import DynFoModel


class Stump(NamedTuple):
    """One stump of the forest."""

    feature: Name
    """The column it splits."""
    at: float | str
    """A number at most this, or this string, is on the first side."""
    weight: float
    sides: tuple[dict[Any, float], dict[Any, float]]
    """Share of each label on either side."""


@declared
class DynFo(UnscaledClassifier):
    """Stumps over the last instances, weighed by their answers, learned again while they are light.

    Choose it when the rule changes quickly and a few features decide at a time. It sees values only through thresholds:
    units and outliers do not matter. `ORF3V`, by the same authors, is the later method and usually the better one.

    Parameters
    ----------
    M
        Stumps.
    N
        Instances kept, on which stumps are learned and over which the error is measured.
    alpha
        Rate α of the weights.
    beta
        Probability β that a stump that may be learned again is kept as it is.
    delta
        Share δ of the features drawn for a stump; one at least, and not more than `max_draws`.
    epsilon
        Loss ε of weight when a stump's feature is absent.
    gamma
        Error γ over the last N answers above which a stump is added.
    theta1
        Weight θ1 below which a stump is dropped.
    theta2
        Quantile θ2 of the weights below which stumps may be learned again.
    max_draws
        Features drawn for a stump at the most, so that a wide stream costs no more than a narrow one; None: any number.
    seed
        Of the features drawn, and of the stumps learned again.
    max_features, evict, objective, costs, coverages
        See `VaryingClassifier`.

    Notes
    -----
    A stump splits one feature i at a threshold and knows the shares p(c) of the labels on either side, among the last N
    instances that have the feature. For a vote, the stumps whose features are present count:

        P(c | x) = Σ_j w_j p_j,side(x)(c) / Σ_j w_j

    Learning an instance (x, y): it is kept, in place of the oldest. If there are fewer than M stumps, one is added in
    each of the first M instances, and later if the error of the last N answers is above γ. Then every stump is weighed,

        w ← w - ε                              its feature is absent
        w ← (2 α [its side's largest label is y] + w) / (1 + α)    otherwise

    so that weights lie between 0 and 2. Stumps with θ1 <= w < q, q the quantile θ2 of all weights, are learned again
    with probability 1 - β and get the weight 1; stumps below θ1 are dropped. To learn a stump, a share δ of the
    features is drawn and the best split of these by Gini impurity taken.

    *Deviations from the paper.* The text leaves open, and here it is so: the first M instances add a stump each, since
    M stumps of the first instance would be alike, and equal weights are not below their quantile; features are drawn
    from those that the kept instances have; thresholds lie midway between two values; the impurity is that of the
    instances with the feature, and its decrease is counted in instances, so that a feature seen twice does not win by
    being pure; a feature with one value makes a stump with equal sides; M bounds the forest. Both sides keep the shares
    of all labels, which for two labels is the paper's vote: w times the share to the largest and the rest to the other.
    A string column splits by one of its values against the others. Sample weights multiply α and ε. If no stump can
    vote, the class frequencies answer; a forest that has lost all stumps gets one. `max_draws` is ours. `as_in_paper`
    has the parameters that the paper names for text. In the 2024 survey's code a stump keeps the last feature drawn,
    not the best, and an empty side votes for the other label.

    *Cost.* O(M labels) to predict. To learn, O(known + M labels), and O(N log N) for every feature drawn for a stump
    that is learned again: about (1 - β) θ2 M of them an instance, but a feature is searched once however many stumps
    draw it. Memory O(N present + (M + known) labels).

    Examples
    --------
    >>> from varifold import DynFo
    >>> model = DynFo()
    >>> for step in range(300):
    ...     x = {"temperature": step * 7 % 40, "load": step * 11 % 30}
    ...     del x["load" if step % 3 else "temperature"]
    ...     hot = x.get("temperature", 0) > 25 or x.get("load", 0) > 20
    ...     model.learn_one(x, "alarm" if hot else "ok")
    >>> model.predict_one({"temperature": 35}), model.predict_one({"temperature": 8, "load": 5})
    ('alarm', 'ok')

    References
    ----------
    C. Schreckenberger, C. Bartelt, H. Stuckenschmidt. Dynamic forest for learning from data streams with varying
    feature spaces. CoopIS 2022.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "M": Integer(1, 100_000),
        "N": Integer(2, 1_000_000),
        "alpha": Real(0, 1e6, open_low=True),
        "beta": Real(0, 1),
        "delta": Real(0, 1),
        "epsilon": Real(0, 2),
        "gamma": Real(0, 1),
        "theta1": Real(0, 1),
        "theta2": Real(0, 1),
        "max_draws": AnyOf(Integer(1), None),
        "seed": Integer(0, 2**63 - 1),
    }
    _paper: ClassVar[dict[str, Any]] = {
        **{"M": 1000, "N": 1000, "alpha": 0.5, "beta": 0.3, "delta": 0.01, "epsilon": 0.001},
        **{"gamma": 0.7, "theta1": 0.05, "theta2": 0.6, "max_draws": None},
    }
    _cost = "O(M labels + N log N)"
    _native_multiclass = True

    M: int = 100
    N: int = 200
    alpha: float = 0.1
    beta: float = 0.8
    delta: float = 0.2
    epsilon: float = 0.001
    gamma: float = 0.7
    theta1: float = 0.05
    theta2: float = 0.6
    max_draws: int | None = 10
    seed: int = 0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"M": 7, "N": 30, "delta": 0.5, "gamma": 0.3, "epsilon": 0.2}

    def _model(self) -> DynFoModel:
        return DynFoModel(
            stumps=self.M,
            window=self.N,
            alpha=self.alpha,
            beta=self.beta,
            delta=self.delta,
            epsilon=self.epsilon,
            gamma=self.gamma,
            theta1=self.theta1,
            theta2=self.theta2,
            draws=self.max_draws or 2**31 - 1,
            seed=self.seed,
        )

    @undisturbed
    def stumps(self) -> list[Stump]:
        """The stumps of the forest, heaviest first; without those whose feature was evicted."""
        space = self._engine.space
        found = []
        for key, value, weight, sides in cast(DynFoModel, self._engine.model).portraits():
            if key:
                name = space.name_of(key >> 1)
                at = str(space.name_of(int(value)))[len(str(name)) + 1 :] if key & 1 else value
                first, second = (dict(zip(self.classes, shares, strict=True)) for shares in sides)
                found.append(Stump(name, at, weight, (first, second)))
        return sorted(found, key=lambda stump: -stump.weight)
