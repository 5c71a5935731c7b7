"""ORF3V: online random feature forests for feature space variabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from varifold.base.classifier import INTERCEPT, Instance, Name, VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.learner import UnscaledLearner
from varifold.base.params import Boolean, Constraint, Integer, OneOf, Real
from varifold.errors import ParameterError, UnknownNameError
from varifold.forest._orf3v import ORF3VModel

Floats = NDArray[np.float64]


class FeatureDistribution(NamedTuple):
    """Thresholds and class-wise digests of one numeric feature."""

    thresholds: Floats
    """Thresholds of the forest's stumps, ascending; empty during the grace period."""
    digests: dict[Any, tuple[Floats, Floats, NDArray[np.bool_]]]
    """By label: centroid values, their weights, and whether all values of a centroid are equal."""


@declared
class ORF3V(UnscaledLearner, VaryingClassifier):
    """Combine one forest of stumps per feature, built from class-wise quantile sketches, by a weighted vote.

    Choose it if predictions must be explained feature by feature, if values have extreme scales or mixed types (only
    ranks matter, not magnitudes), if features vanish for good, or if there are more than two labels. It models no
    interaction between features unless `pairs` is set.

    Parameters
    ----------
    J
        Stumps per forest.
    K
        Random thresholds drawn for a new stump; the one with the lowest Gini impurity is kept.
    grace
        Observations of a feature before its forest is built.
    r
        Maximum number of values of a feature between two updates of its forest. An update replaces one stump and
        recomputes the others from the sketches.
    growth
        A new forest is updated sooner: whenever its sketches have grown by this share.
    update
        ``"values"``: each forest by `r` and `growth`, as it receives values. ``"rounds"``: all forests together
        whenever t mod r = 0 (Algorithm 1); `growth` is then without effect, and a round costs O(known).
    alpha
        Rate α of the weights (eq. 8), which track twice the accuracy of a forest's own votes, and of the importances.
    window
        Number n of rounds that count as recent for a feature's availability.
    delta
        Probability δ of pruning a feature that has not vanished.
    prune
        ``"hoeffding"`` (the paper's bound), ``"gap"`` (an absence too long for the feature's availability),
        ``"hoeffding+gap"`` or ``"none"``.
    replace
        Which stump an update replaces: the ``"oldest"``, a ``"random"`` one, or the ``"worst"``, whose split has the
        highest impurity in the current sketches.
    thresholds
        Draw thresholds uniformly from the range of the values (``"uniform"``) or from the values (``"quantile"``).
    vote
        ``"prior"``: log prior(c) + b Σ w_i log(P_i(c) / prior(c)). ``"paper"``: Σ w_i P_i(c).
    temper
        Whether to learn the factor b of ``vote="prior"``, so that redundant features do not make the vote
        overconfident; otherwise b = 1.
    smoothing
        Weight, in observations, of the class prior on either side of a stump; with 0 only an empty side has the prior.
    compression
        Compression of the t-digests: roughly the number of centroids per feature and label.
    pairs
        Maximum number of pairs of numeric features that vote in addition to the forests, for features that are
        informative only together; as many more are on trial. 0 disables pairs. Requires ``vote="prior"``.
    seed
        Seed of the thresholds and of the candidate pairs.
    max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* Eq. 2: the impurity is minimised over K random thresholds. Eq. 5 sums over classes. Eq.
    1: the default vote is relative to the class prior, because the published vote predicts the majority class if
    classes are imbalanced. Eq. 6 is smoothed by the prior. Eq. 7: a feature is pruned in a round in which it is absent
    and older than the window, if its share of all its rounds exceeds its share of the window by more than ε = √(ln(1/δ)
    / 2n). This can never happen if the availability is below ε, so an absence of g >= n rounds with (1 - Ω)^g < δ
    prunes the feature too; Ω is its availability when last seen, with n rounds of absence added. Eq. 8: ŷ is the
    forest's own vote. The interval r counts the values of the feature, not rounds (``update="rounds"`` does). A string
    column is one forest: a single stump with one branch per level, with counts instead of sketches; it is present if
    any of its levels is. Values are used unscaled, and there is no intercept: the class prior is reported as
    ``"(intercept)"``. The paper gives no parameters; the defaults are ours.

    *Pairs* are not in the paper. The values of two features are counted by label in a grid of quartiles. The pair votes
    log P(c | cell) / Q(c), where Q is the naive Bayes prediction from the two quartiles and P is shrunk towards Q by
    eight observations, so the vote is zero if the two effects are additive. Each vote has a factor between 0 and 1,
    learned like b. Pairs are drawn at random from the present features, in every other round preferring informative
    ones, and are on trial for 100 occurrences (50 if they have cost likelihood by then) without a vote. Then the mean
    gain in log likelihood that the vote would have brought, minus its standard error, is compared with the smallest
    among the voting pairs. After 100, 200, 400, ... occurrences the grid moves to the current quartiles, and its counts
    are redistributed by the overlap of the bins. A pair is dropped if one of its features vanishes or if its votes have
    cost more than they gained.

    *Cost.* O(present (log J + C + log known) + pairs (C + log present)) per instance; after every r values of a feature
    an update of its forest, O(C (J + K) log compression + C compression). Memory is at most O(known C compression), and
    far less for features with few distinct values. A vanished feature is forgotten together with its name and slot, so
    memory follows the live features. Once a column has more than 64 levels, its vanished levels are forgotten by the
    same rule for gaps.

    Examples
    --------
    >>> from varifold import ORF3V
    >>> model = ORF3V()
    >>> for step in range(300):
    ...     x = {"temperature": step % 40, "site": "north" if step % 3 else "south"}
    ...     if step % 5 == 0:
    ...         del x["temperature"]  # the sensor dropped out
    ...     model.learn_one(x, "alarm" if 10 < step % 40 < 20 else "ok")
    >>> model.predict_one({"temperature": 15}), model.predict_one({"temperature": 35})
    ('alarm', 'ok')
    >>> {feature: round(bits, 2) for feature, bits in model.importances().items()}  # temperature decides
    {'temperature': 0.25, 'site': 0.01}

    References
    ----------
    C. Schreckenberger, Y. He, S. Lüdtke, C. Bartelt, H. Stuckenschmidt. Online random feature forests for learning in
    varying feature spaces. AAAI 2023.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "J": Integer(1, 1000),
        "K": Integer(1, 1000),
        "grace": Integer(1, 2**31 - 1),
        "r": Integer(1),
        "growth": Real(0),
        "alpha": Real(0, open_low=True),
        "window": Integer(2, 1_000_000),
        "delta": Real(1e-300, 0.5),
        "prune": OneOf("hoeffding+gap", "hoeffding", "gap", "none"),
        "replace": OneOf("oldest", "random", "worst"),
        "update": OneOf("values", "rounds"),
        "thresholds": OneOf("uniform", "quantile"),
        "vote": OneOf("prior", "paper"),
        "temper": Boolean(),
        "smoothing": Real(0),
        "compression": Real(10, 10_000),
        "pairs": Integer(0, 1000),
        "seed": Integer(0, 2**63 - 1),
    }
    _paper: ClassVar[dict[str, Any]] = {
        "vote": "paper",
        "prune": "hoeffding",
        "temper": False,
        "smoothing": 0.0,
        "update": "rounds",
    }
    _cost = "O(present log known)"
    _native_multiclass = True
    _uses_absence = True

    J: int = 10
    K: int = 10
    grace: int = 5
    r: int = 100
    growth: float = 0.05
    alpha: float = 0.002
    window: int = 200
    delta: float = 1e-6
    prune: str = "hoeffding+gap"
    replace: str = "oldest"
    thresholds: str = "uniform"
    vote: str = "prior"
    temper: bool = True
    smoothing: float = 1.0
    compression: float = 100.0
    pairs: int = 0
    seed: int = 0
    update: str = "values"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs and self.vote == "paper":
            raise ParameterError(
                "The 'pairs' parameter of ORF3V must be 0 with vote='paper'; the paper's vote has none."
            )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"pairs": 4}

    def _model(self) -> ORF3VModel:
        return ORF3VModel(
            stumps=self.J,
            candidates=self.K,
            grace=self.grace,
            r=self.r,
            growth=self.growth,
            alpha=self.alpha,
            window=self.window,
            delta=self.delta,
            prune=self.prune,
            replace=self.replace,
            thresholds=self.thresholds,
            compression=self.compression,
            smoothing=self.smoothing,
            vote=self.vote,
            tempered=self.temper,
            seed=self.seed,
            pairs=self.pairs,
            update=self.update,
        )

    @property
    def _forests(self) -> ORF3VModel:
        return cast(ORF3VModel, self._engine.model)

    @undisturbed
    def importances(self) -> dict[Name, float]:
        """Return the information about the label, in bits, in a value of each feature or string column, largest first.

        It is the mean of log2 P_i(y) / prior(y) over the forest's own votes, each cast before the label was learned,
        with most weight on the last 1/α votes. A useless feature has about 0, or slightly less. Half of what a pair
        adds beyond its two features (`interactions`) is credited to each of them.
        """
        bits_by_slot = self._forests.feature_information()
        for pair, bits in self._forests.pair_information().items():
            for slot in pair:
                bits_by_slot[slot] += bits / 2
        return self._by_name(bits_by_slot)

    @undisturbed
    def interactions(self) -> dict[tuple[Name, Name], float]:
        """Return the information about the label, in bits, that each voting pair adds to the rest, largest first.

        It is the mean of log2 of P(y) with the pair's vote over P(y) without it, before the label was learned, with
        most weight on the last 1/α votes. Empty without `pairs`.
        """
        name_of = self._engine.space.name_of
        ranked = sorted(self._forests.pair_information().items(), key=lambda item: (-item[1], item[0]))
        return {(name_of(a), name_of(b)): bits for (a, b), bits in ranked}

    @undisturbed
    def weights(self) -> dict[Name, float]:
        """Return the weight w_i of each forest in the vote (eq. 8) by feature or string column, largest first.

        A weight lies between 0 and 2 and moves from 1 towards twice the accuracy of the forest's own votes. It depends
        on how often the feature was seen, and with one frequent label it separates good forests poorly from bad ones;
        use `importances` for that.
        """
        return self._by_name(self._forests.feature_weights())

    def _by_name(self, values: dict[int, float]) -> dict[Name, float]:
        """Replace slots by names, largest value first; ties by slot."""
        name_of = self._engine.space.name_of
        return {name_of(u): value for u, value in sorted(values.items(), key=lambda item: (-item[1], item[0]))}

    @undisturbed
    def votes_one(self, x: Instance) -> dict[Name, dict[Any, float]]:
        """Return the contribution of each present feature to every label's score, most influential feature first.

        The vote of a pair is split evenly between its two features, here and in `explain_one`.
        """
        by_label = {label: self.explain_one(x, label) for label in self.classes}
        names: dict[Name, None] = {name: None for parts in by_label.values() for name in parts}
        votes = {name: {label: parts.get(name, 0.0) for label, parts in by_label.items()} for name in names}
        return dict(sorted(votes.items(), key=lambda item: (item[0] == INTERCEPT, _negative_spread(item[1]))))

    @undisturbed
    def feature_distribution(self, feature: Name) -> FeatureDistribution:
        """Return thresholds and class-wise digests of a numeric feature, for inspection or plots."""
        space = self._engine.space
        slot = space.id_of(feature)
        distribution = self._forests.feature_distribution(slot) if slot > 0 else None
        if distribution is None:
            raise UnknownNameError(
                f"there is no digest for the feature {feature!r}; a numeric feature has one from its first value until "
                "it vanishes (`features` lists all)"
            )
        thresholds, digests = distribution
        return FeatureDistribution(thresholds, dict(zip(self.classes, digests, strict=True)))


def _negative_spread(votes: dict[Any, float]) -> float:
    """Return minus the spread of a feature's votes, as a sort key."""
    return min(votes.values()) - max(votes.values())
