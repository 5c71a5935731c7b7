"""ORF3V: online random feature forests for feature space variabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from varifold.base.classifier import INTERCEPT, Instance, Name
from varifold.base.declared import UnscaledClassifier, declared
from varifold.base.estimator import undisturbed
from varifold.base.params import Boolean, Constraint, Integer, OneOf, Real
from varifold.errors import ParameterError, UnknownNameError
from varifold.forest._orf3v import ORF3VModel

Floats = NDArray[np.float64]


class Portrait(NamedTuple):
    """What the learner knows of one numeric feature."""

    thresholds: Floats
    """Of the forest's stumps, ascending; none before the grace period is over."""
    digests: dict[Any, tuple[Floats, Floats, NDArray[np.bool_]]]
    """By label: values, weights, and whether all of a centroid's values are equal."""


@declared
class ORF3V(UnscaledClassifier):
    """A forest of stumps for every feature, read off class-wise sketches; those present vote by weight.

    Choose it when an answer has to be explained feature by feature, when values are on wild scales or of mixed kinds
    (it looks at ranks, never at magnitudes), when features vanish for good, and for more than two labels. It sees no
    interaction between features unless `pairs` is set.

    Parameters
    ----------
    J
        Stumps per forest.
    K
        Random thresholds drawn for a new stump; the one with the lowest Gini impurity is taken.
    grace
        Observations of a feature before it gets its forest.
    r
        Most values of a feature between two renewals of its forest: one stump is replaced, all are read off the
        sketches again.
    growth
        A young forest is renewed sooner: when its sketches have grown by this share.
    alpha
        Rate α of the weights (eq. 8), which follow twice the share of a forest's own votes that were right, and of the
        importances.
    window
        Rounds n over which availability counts as recent.
    delta
        Risk δ of giving up a feature that has not vanished.
    prune
        ``"hoeffding"`` (the paper's bound), ``"gap"`` (an absence too long for the feature's availability),
        ``"hoeffding+gap"`` or ``"none"``.
    replace
        Which stump goes: the ``"oldest"`` or a ``"random"`` one.
    thresholds
        Drawn evenly from the range of the values (``"uniform"``) or from the values themselves (``"quantile"``).
    vote
        ``"prior"``: log prior(c) + b Σ w_i log(P_i(c) / prior(c)). ``"paper"``: Σ w_i P_i(c).
    temper
        Whether the factor b of ``vote="prior"`` is learned, so that features that repeat each other do not make the
        vote overconfident; otherwise it is 1.
    smoothing
        Observations' worth of class prior mixed into either side of a stump.
    compression
        Of the t-digests: about the number of centroids per feature and label.
    pairs
        Most pairs of numeric features that vote beside the forests, where two together say more than each alone; as
        many are on trial. 0: none. They need ``vote="prior"``.
    seed
        Of the thresholds, and of the pairs tried.
    max_features, evict, objective, costs, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *Deviations from the paper.* Eq. 2: the impurity is minimised, over K random thresholds. Eq. 5 sums over classes.
    Eq. 1: the default vote is relative to the class prior, since the printed one gives the majority class where
    classes are not balanced. Eq. 6 is smoothed by the prior. Eq. 7: a feature is given up in a round in which it is
    absent and older than the window, when its share of all its rounds exceeds its share of the window by more than
    ε = √(ln(1/δ) / 2n). As that can never happen to a feature whose availability is below ε, an absence of g >= n
    rounds with (1 - Ω)^g < δ ends it too; Ω is its availability when last seen, n rounds of absence added. Eq. 8: ŷ is
    the forest's own vote. The interval r counts the values of the feature, not rounds. A string column is one
    forest: a single stump with a branch for every level, counted, not sketched; it is there when any of its levels
    is. Values are used as they come: there is no scaler and no intercept, and the class prior is shown under
    ``"(intercept)"``. The paper gives no parameters; these are ours.

    *Pairs*, which the paper does not have. The values of two features are counted by label in a grid of quartiles, and
    the pair votes log P(c | cell) / Q(c), where Q is what its two quartiles say by naive Bayes and P is shrunk towards
    Q by eight observations: nothing where the two merely add up. Each vote has a factor between 0 and 1, learned as b
    is. Pairs are drawn at random from the features present, in every other round preferring informative ones, and
    are on trial for 100 sights (50 if they have cost by then), without a vote; then the mean gain of log likelihood
    that the vote would have brought, less its standard error, is compared with the least among those that vote. After
    100, 200, 400, ... sights the grid moves to the quartiles of then, its counts shared out by how bins overlap. A
    pair goes when one of its features vanishes, or when its votes have cost more than they brought.

    *Cost.* O(present (log J + C + log known) + pairs (C + log present)) per instance, and every r values of a feature
    a renewal, O(C (J + K) log compression + C compression); memory O(known C compression) at most, and far less for
    features with few distinct values. A feature that has vanished is forgotten, name and slot included, so that memory
    follows the features that are alive. So is a level of a column that stays, by the same rule for gaps, once the
    column has more than 64 levels.

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
        "grace": Integer(1),
        "r": Integer(1),
        "growth": Real(0),
        "alpha": Real(0, open_low=True),
        "window": Integer(2, 1_000_000),
        "delta": Real(1e-300, 0.5),
        "prune": OneOf("hoeffding+gap", "hoeffding", "gap", "none"),
        "replace": OneOf("oldest", "random"),
        "thresholds": OneOf("uniform", "quantile"),
        "vote": OneOf("prior", "paper"),
        "temper": Boolean(),
        "smoothing": Real(0, open_low=True),
        "compression": Real(10, 10_000),
        "pairs": Integer(0, 1000),
        "seed": Integer(0, 2**63 - 1),
    }
    _paper: ClassVar[dict[str, Any]] = {"vote": "paper", "prune": "hoeffding", "temper": False}
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
        )

    @property
    def _forests(self) -> ORF3VModel:
        return cast(ORF3VModel, self._engine.model)

    @undisturbed
    def importances(self) -> dict[Name, float]:
        """Bits of information about the label in a value of each feature, a string column being one; largest first.

        It is the mean of log2 P_i(y) / prior(y) over the forest's own votes, each cast before the label was learned;
        the last 1/α or so count most. 0 is worth nothing; a little less than 0 is what a useless forest costs. Half of
        what a pair adds beyond its two features (`interactions`) is added to each of them.
        """
        found = self._forests.feature_information()
        for both, bits in self._forests.pair_information().items():
            for u in both:
                found[u] += bits / 2
        return self._by_name(found)

    @undisturbed
    def interactions(self) -> dict[tuple[Name, Name], float]:
        """Bits of information about the label that each voting pair of features adds to the rest; largest first.

        It is the mean of log2 P(y) with the pair's vote over P(y) without it, cast before the label was learned; the
        last 1/α or so count most. Empty without `pairs`.
        """
        name_of = self._engine.space.name_of
        found = sorted(self._forests.pair_information().items(), key=lambda item: (-item[1], item[0]))
        return {(name_of(a), name_of(b)): bits for (a, b), bits in found}

    @undisturbed
    def weights(self) -> dict[Name, float]:
        """Weight w_i of every forest in the vote (eq. 8) by feature, a string column being one; largest first.

        A weight lies between 0 and 2 and moves from 1 towards twice the share of the forest's own votes that were
        right, so it depends on how often a feature was seen, and where one label is frequent it tells good forests
        from bad ones poorly: see `importances` for that.
        """
        return self._by_name(self._forests.feature_weights())

    def _by_name(self, values: dict[int, float]) -> dict[Name, float]:
        """By feature, largest first; among equals by slot."""
        name_of = self._engine.space.name_of
        return {name_of(u): value for u, value in sorted(values.items(), key=lambda item: (-item[1], item[0]))}

    @undisturbed
    def votes_one(self, x: Instance) -> dict[Name, dict[Any, float]]:
        """What each feature present adds to every label's score, the feature with the largest say first.

        A pair's vote goes half to either of its features, here and in `explain_one`.
        """
        by_label = {label: self.explain_one(x, label) for label in self.classes}
        names: dict[Name, None] = {name: None for parts in by_label.values() for name in parts}
        votes = {name: {label: parts.get(name, 0.0) for label, parts in by_label.items()} for name in names}
        return dict(sorted(votes.items(), key=lambda item: (item[0] == INTERCEPT, _say(item[1]))))

    @undisturbed
    def portrait(self, feature: Name) -> Portrait:
        """Thresholds and class-wise digests of a numeric feature, for a closer look or a picture."""
        space = self._engine.space
        slot = space.id_of(feature)
        found = self._forests.portrait(slot) if slot > 0 else None
        if found is None:
            raise UnknownNameError(
                f"no digest is held for the feature {feature!r}; a numeric feature has one from its first value until "
                "it vanishes (`features` lists all)"
            )
        thresholds, digests = found
        return Portrait(thresholds, dict(zip(self.classes, digests, strict=True)))


def _say(votes: dict[Any, float]) -> float:
    """Minus the spread of a feature's votes."""
    return min(votes.values()) - max(votes.values())
