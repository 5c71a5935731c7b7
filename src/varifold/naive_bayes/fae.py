"""FAE: an ensemble of naive Bayes classifiers, each on the features that were the best when it began."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

from varifold.base.classifier import Name, VaryingClassifier
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.learner import UnscaledLearner
from varifold.base.params import Constraint, Integer, OneOf, Real
from varifold.naive_bayes._fae import FAEModel


class Member(NamedTuple):
    """One classifier of the ensemble."""

    age: int
    """Number of instances learned."""
    accuracy: float
    """Accuracy of its last N predictions."""
    marks: int
    """Consecutive judgements that rated it below the threshold."""
    weight: float
    """Share of the vote."""
    features: list[Name]


@declared
class FAE(UnscaledLearner, VaryingClassifier):
    """Naive Bayes classifiers on the best features of their time, added when the best features or the accuracy change.

    For text-like streams whose vocabulary drifts: words come, matter for a while, and lose their meaning. It looks at
    which features are present, never at values; where presence carries no information, it predicts the class
    frequencies.

    Parameters
    ----------
    M
        Features of a new member, those of largest χ² among all that are known.
    m
        Maturity: instances that a member learns before it votes.
    p
        Probation: judgements in a row below the threshold after which a member is removed.
    f
        A member is added when more than this share of the best features has changed since the youngest was made.
    r
        Instances that the youngest member must have learned before falling accuracy can bring another.
    N
        Predictions over which accuracy is measured; it falls when it is lower over the last N than over the last 2N.
    vote
        ``"probability"``: members vote by their probabilities; ``"label"``: each for one label, as in the paper.
    prior
        Observations added to every count (> 0).
    max_learners
        Members at the most; the least accurate is replaced. The paper has no bound.
    max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    After every instance all known features are ranked by χ² of the table presence × label over the whole stream; the
    first M are the best features B. A member j keeps its features F_j for life and counts, from its first instance on,
    n_jc instances of label c and n_jfc of them with feature f:

        P_j(c | x) ∝ (n_jc + a) / (n_j + k a) · Π over f in F_j present in x of (n_jfc + a) / (n_jc + 2 a)

    with a = `prior` and k labels. The ensemble predicts Σ_j w_j P_j(c | x) / Σ_j w_j, where w_j is the accuracy of a
    member over its last N predictions if it is at least m instances old and not on probation, and 0 otherwise; without
    such a member all vote with their ages. Learning an instance: record for ensemble and members whether their
    predictions were correct, count it, rank the features. A member with the features B is added if ``|B △ F_youngest| >
    f |B|``, or if the youngest is older than r and the ensemble's accuracy falls. Then the threshold is the middle
    between the best and the worst member's accuracy: members below it get a mark, the others lose theirs, and at p
    marks one goes.

    *Deviations from the paper.* The text leaves open, and here it is so: a member starts from empty counts; a
    feature that appears late counts as absent before; the share f is of ``|B|`` (the paper's M where more are
    known); members of any age are judged. Counts are smoothed. Any number of labels; a string value is the feature
    ``name=value``. The vote by probabilities and the bound are ours, `as_in_paper` sets the vote back. The 2024
    survey's FAE is another learner: its code multiplies the prior in place at every score, adds nothing to the
    votes for label 0, compares sums of different lengths as accuracies and does not update the counts that rank the
    features.

    *Cost.* O(known × labels + members × (M + present × labels)) per instance; to predict, the second part alone. Memory
    O((known + members × M) × labels).

    Examples
    --------
    >>> from varifold import FAE
    >>> model = FAE(M=2)
    >>> for step in range(200):  # the words that matter change
    ...     words = ("goal", "vote") if step < 60 else ("match", "senate")
    ...     model.learn_one({"the": 1, words[step % 2]: 1}, "politics" if step % 2 else "sport")
    >>> model.predict_one({"the": 1, "match": 1}), model.predict_one({"senate": 1})
    ('sport', 'politics')
    >>> model.learners()[-1].features
    ['match', 'senate']

    References
    ----------
    B. Wenerstrom, C. Giraud-Carrier. Temporal data mining in dynamic feature spaces. ICDM 2006.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "M": Integer(1, 10_000_000),
        "m": Integer(1, 1_000_000),
        "p": Integer(1, 1_000_000),
        "f": Real(0, 2),
        "r": Integer(0, 1_000_000_000),
        "N": Integer(1, 100_000),
        "vote": OneOf("probability", "label"),
        "prior": Real(0, 1e6, open_low=True),
        "max_learners": Integer(2, 10_000),
    }
    _paper: ClassVar[dict[str, Any]] = {"vote": "label"}
    _cost = "O(known * labels + learners * M)"
    _native_multiclass = True
    _uses_absence = True
    _uses_values = False

    M: int = 250
    m: int = 5
    p: int = 3
    f: float = 0.15
    r: int = 10
    N: int = 50
    vote: str = "probability"
    prior: float = 1.0
    max_learners: int = 20

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"M": 3, "N": 10, "max_learners": 4, "vote": "label"}

    def _model(self) -> FAEModel:
        return FAEModel(
            prior=self.prior,
            best=self.M,
            maturity=self.m,
            patience=self.p,
            change=self.f,
            growth=self.r,
            span=self.N,
            most=self.max_learners,
            hard=self.vote == "label",
        )

    @undisturbed
    def learners(self) -> list[Member]:
        """Members of the ensemble, oldest first."""
        name_of = self._engine.space.name_of
        summaries = cast(FAEModel, self._engine.model).summaries()
        return [
            Member(age, accuracy, marks, weight, [name_of(slot) for slot in slots])
            for age, accuracy, marks, weight, slots in summaries
        ]
