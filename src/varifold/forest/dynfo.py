"""DynFo: a dynamic forest of decision stumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

from varifold.base.classifier import Name, VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.learner import UnscaledLearner
from varifold.base.params import AnyOf, Constraint, Integer, Real
from varifold.forest._dynfo import DynFoModel


class Stump(NamedTuple):
    """A stump of the forest."""

    feature: Name
    """Column that the stump splits."""
    at: float | str
    """Threshold or level: numbers up to it, or this string, belong to the first side."""
    weight: float
    sides: tuple[dict[Any, float], dict[Any, float]]
    """Share of each label, by side."""


@declared
class DynFo(UnscaledLearner, VaryingClassifier):
    """Combine decision stumps over recent instances, weighted by accuracy and relearned if their weight is low.

    Choose it if the concept drifts quickly and few features matter at a time. Values enter only through thresholds, so
    units and outliers do not matter. `ORF3V`, a later method by the same authors, is usually better.

    Parameters
    ----------
    M
        Maximum number of stumps.
    N
        Number of recent instances, on which stumps are learned and the error is measured.
    alpha
        Rate α of the weights.
    beta
        Probability β that a candidate for relearning is kept unchanged.
    delta
        Share δ of the features drawn for a stump; at least one, at most `max_draws`.
    epsilon
        Weight ε that a stump loses if its feature is absent.
    gamma
        Error γ over the last N predictions above which a stump is added.
    theta1
        Weight θ1 below which a stump is dropped.
    theta2
        Quantile θ2 of the weights below which a stump may be relearned.
    max_draws
        Maximum number of features drawn for a stump, which bounds the cost on wide streams; None: no limit.
    seed
        Seed of the features drawn and of the stumps relearned.
    max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    A stump splits one feature i at a threshold and stores the shares p(c) of the labels on either side, among those of
    the last N instances that have the feature. Stumps whose features are present vote:

        P(c | x) = Σ_j w_j p_j,side(x)(c) / Σ_j w_j

    To learn an instance (x, y), it replaces the oldest in the window. While there are fewer than M stumps, each of the
    first M instances adds one, and later instances do if the error of the last N predictions exceeds γ. Then all
    weights are updated,

        w ← w - ε                              its feature is absent
        w ← (2 α [its side's largest label is y] + w) / (1 + α)    otherwise

    which keeps them between 0 and 2. A stump with θ1 <= w < q, where q is the quantile θ2 of all weights, is relearned
    with probability 1 - β and gets weight 1; a stump below θ1 is dropped. To learn a stump, a share δ of the features
    is drawn and the best split among them by Gini impurity is chosen.

    *Deviations from the paper.* Where the text is silent: each of the first M instances adds a stump, since M stumps of
    the first instance would be identical, and equal weights are not below their quantile; features are drawn from those
    present in the window; thresholds are midpoints between two values; the impurity is that of the instances with the
    feature, and its decrease is measured in instances, so that a feature seen twice does not win by being pure; a
    feature with one value gives a stump with equal sides; M bounds the forest. Both sides keep the shares of all
    labels, which for two labels is the paper's vote: w times the share for the largest and the rest for the other. A
    string column is split by one of its values against all others. Sample weights multiply α and ε. If no stump can
    vote, the class frequencies are predicted; a forest that has lost all stumps gets one. `max_draws` is ours.
    `as_in_paper` uses the paper's parameters for text. In the code of the 2024 survey, a stump keeps the last feature
    drawn instead of the best, and an empty side votes for the other label.

    *Cost.* O(M labels) to predict. Learning takes O(known + M labels), plus O(N log N) for each feature drawn for a
    relearned stump: about (1 - β) θ2 M stumps per instance, where each feature is searched at most once. Memory
    O(N present + (M + known) labels).

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
        """Return the stumps, largest weight first, without those whose feature was evicted."""
        space = self._engine.space
        stumps = []
        for key, value, weight, sides in cast(DynFoModel, self._engine.model).stumps_by_key():
            if key:
                name = space.name_of(key >> 1)
                at = str(space.name_of(int(value)))[len(str(name)) + 1 :] if key & 1 else value
                first, second = (dict(zip(self.classes, shares, strict=True)) for shares in sides)
                stumps.append(Stump(name, at, weight, (first, second)))
        return sorted(stumps, key=lambda stump: -stump.weight)
