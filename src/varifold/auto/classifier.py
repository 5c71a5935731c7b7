"""AutoClassifier: the learner to start with, and usually to stay with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from varifold.auto._auto import AutoModel
from varifold.auto._categories import CategoriesModel
from varifold.auto._renewed import RenewedModel
from varifold.auto.first_edition import (
    BOUNDED,
    COLUMNS,
    COMBINATION,
    EARLY,
    EVERYTHING,
    LATE,
    NEVER,
    SECOND_COMBINATION,
    Expert,
    first_experts,
    made,
)
from varifold.auto.report import AutoReport, ExpertState, changes, drifts, risen_share
from varifold.base.blocks import to_block
from varifold.base.classifier import VaryingClassifier
from varifold.base.costs import check_one_rule
from varifold.base.estimator import undisturbed
from varifold.base.files import Arrays
from varifold.base.params import Constraint, OneOf, Real
from varifold.base.young import instances_of
from varifold.copula._gaussian import GaussianModel
from varifold.copula._latent import Copula
from varifold.copula._ovfm import OVFMModel
from varifold.forest._windowforest import WindowForestModel
from varifold.linear._additive import AdditiveRule
from varifold.linear._arow import AROWRule
from varifold.linear._recall import RecallRule
from varifold.naive_bayes._frequency import FrequencyModel
from varifold.naive_bayes._gaussiannb import GaussianNBModel
from varifold.naive_bayes._presence import PresenceModel
from varifold.neighbours._neighbours import NeighboursModel

EDITION = 3
"""Of the list of experts: 1 is that of files and pickles that name none."""


class AutoClassifier(VaryingClassifier):
    """The default learner: several kinds of learner at once, each trusted as far as it has earned.

    No tuning, any varying stream. Linear, additive and generative learners, trees, one that only looks at which
    features are there, and one that remembers recent instances all learn the same stream; their probabilities are
    calibrated online and mixed by their log loss. Ask `report()` what it found.

    Parameters
    ----------
    budget
        ``"fast"`` runs the cheap experts; ``"balanced"`` adds full covariance, neighbours, a copula, an evolving map,
        Gaussians, a window forest and two learners that recall what absent features read before; ``"best"`` also more
        neighbours and trees, and a bolder additive learner.
    threshold
        With two labels: the probability from which on the rarer one is answered, in (0, 1). Lower it when missing
        the rare label costs more than a false alarm. Probabilities stay as they are. Instead of it, `costs` and
        `objective` work with any number of labels.
    scale, clip, max_features, evict, objective, costs, coverages
        See `VaryingClassifier`. ``objective="log_loss"`` answers by the mixture alone, without the guard.

    Notes
    -----
    *No paper.* Experts: diagonal AROW (r = 10), and a second one (r = 3) that remembers about 100 values of a
    feature; `Additive` (r = 30); Gaussian naive Bayes on scaled values; naive Bayes on the mere presence of columns (up
    to 2,048); the class frequencies. From ``"balanced"`` on: AROW with full covariance up to 128 features (beyond that
    it becomes diagonal); the 5 nearest of the last 500 instances; AROW on the latent scores of `OVFM` (64 features);
    `CWFE`; a Gaussian per class (64 features, covariances learned by online expectation maximisation); `WindowForest`
    with 10 trees on up to 20,000 rows (fewer beyond 12 values per row, to hold 100,000 values); two that recall the 64
    columns seen last, linear and additive (150 values): running means of a column's values beside its value and in its
    place while it is absent, and how long it has been absent. With ``"best"`` 30 trees, the 10 nearest of 1,000 and
    `Additive` with r = 10.

    Each expert's logits are scaled by a temperature and all of them are added up in a stack, both learned by an
    extended Kalman filter. The answer is the exponentially weighted mixture (log loss, rate 1/2) of the calibrated
    experts and the stack, with 1% of the weight shared out each round: over T rounds its log loss exceeds that of
    the best of the k experts and the stack by at most 2 ln(k + 4) + 2 T ln(1 / (1 - .01)). A last temperature, learned
    alike, makes the mixture as sure as it is right. Until the mixture has given two more right answers than
    the most frequent class would have, or its log loss is 2 below that of the class frequencies, it answers another
    class only if it prefers it by 1.5 times as much as the most frequent class is the more frequent; each answer by
    which it lies behind that class asks for half as much again, and the first 50 instances for a part only.

    Costly experts whose recent log loss is .05 above the mixture's and that hardly move the stack are, after 200
    rounds (those that recall: 500), asked and taught in one round of eight until they do better. Copula, map and
    Gaussians stand aside for good beyond 1,024 columns, and where the matrices that they hold, one per label, would
    have more than 65,536 numbers in all (16 labels with 64 features); `report()` says so.

    *Categories.* A string column with more than 32 levels is wide. The lines see every level of it; all other experts
    see the levels that hold at least 1/32 of its instances and, in place of the others, one number: by how much the
    log-odds of the label differ in that level from those of the column, counted before the instance and smoothed by 10
    instances. One more expert adds these up for any number of labels. Limits count columns, not levels.

    *Drift.* The first AROW, `Additive`, naive Bayes and the class frequencies start again when the stream
    changes: `varifold.drift.ADWIN` (delta = .5) watches their errors, and a rise begins a trial in which a new copy
    learns beside the old one and up to three copies of earlier times are asked again. The first copy that leads by more
    than 1.5 standard deviations of a sign test and one answer takes over; the old one is kept, for concepts that come
    back. Then the expert's temperature is learned as at the start and the stack becomes less certain.
    `report().drifts` holds when this happened and on what evidence, and every rise of the error of the answers.

    *Many labels.* The stack has one bias per label, whose covariance takes memory with the square of the labels and
    time with their cube; beyond 64 labels it has none. Beyond 256 labels the costly experts stand aside for good, as
    some of them hold a matrix per label.

    *Cost.* O(present) for ``"fast"``; ``"balanced"`` O(500 present + min(known, 128)^2 + min(known, 64)^3).

    Examples
    --------
    >>> from varifold import AutoClassifier
    >>> model = AutoClassifier()
    >>> for step in range(300):
    ...     x = {"load": step * 7 % 100 / 100, "fan": "on" if step % 3 else "off"}
    ...     if step % 4 == 0:
    ...         del x["fan"]
    ...     model.learn_one(x, "fault" if 0.3 < x["load"] < 0.6 else "ok")
    >>> [model.predict_one({"load": x}) for x in (0.1, 0.45, 0.9)]
    ['ok', 'fault', 'ok']

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "budget": OneOf("fast", "balanced", "best"),
        "threshold": Real(0.001, 0.999),
    }
    _cost = "O(present); budget='balanced': O(500 present + min(known, 128)^2)"
    _native_multiclass = True
    _uses_absence = True
    _edition = 1
    _window = 20_000
    _names: list[str] | None = None
    """The experts held, if not all of the edition's."""

    def __init__(
        self,
        budget: str = "balanced",
        threshold: float = 0.5,
        *,
        scale: str = "robust",
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
        objective: str = "accuracy",
        costs: Mapping[Any, Any] | None = None,
        coverages: Sequence[float] = (),
    ) -> None:
        self.budget = budget
        self.threshold = threshold
        self._edition = EDITION
        self._check_rules(objective, costs)
        super().__init__(
            scale=scale,
            fit_intercept=True,
            clip=clip,
            max_features=max_features,
            evict=evict,
            objective=objective,
            costs=costs,
            coverages=coverages,
        )

    def _check_rules(self, objective: str, costs: Mapping[Any, Any] | None) -> None:
        """Refuse a threshold beside an objective or costs."""
        given = {"objective": objective != "accuracy", "costs": costs is not None, "threshold": self.threshold != 0.5}
        check_one_rule(type(self).__name__, given)

    def _model(self) -> AutoModel:
        known = _of_edition(self._edition, self.budget, self._window)
        names = self._names or [name for name, *_ in known]
        guard = {"guard": 0.0} if self.objective == "log_loss" else {}
        chosen = [expert for expert in known if expert[0] in names]
        combination = {1: COMBINATION, 2: SECOND_COMBINATION}.get(self._edition, {})
        return AutoModel(chosen, threshold=self.threshold, **{**combination, **guard})

    def _fill_early(self) -> None:
        """Take a window that is full within the stream of a check; for a learner that has learned nothing."""
        self._window = 200
        self._engine = self._make_engine()

    def _header(self) -> dict[str, Any]:
        model = cast(AutoModel, self._engine.model)
        return {**super()._header(), "edition": self._edition, "experts": model.names}

    def _apply_header(self, header: Mapping[str, Any]) -> None:
        """The edition and the experts of a file; one that names no edition is of the first."""
        edition, names = header.get("edition", 1), header.get("experts")
        if edition not in range(1, EDITION + 1):
            raise ValueError(f"experts of edition {edition!r}; this version knows 1 to {EDITION}")
        self._edition, self._names = edition, names
        self._engine = self._make_engine()
        if names is not None and names != cast(AutoModel, self._engine.model).names:
            raise ValueError(f"experts that edition {edition} does not have: {names!r}")

    def _instances(self, arrays: Arrays) -> Arrays | None:
        """The instances of the window forest's window, which holds all of a short stream."""
        names = cast(AutoModel, self._engine.model).names
        if "window forest" not in names:
            return None
        return instances_of(arrays, f"model.{names.index('window forest')}.window")

    @undisturbed
    def report(self, most: int = 8, predicted: Any = None) -> AutoReport:
        """Which experts carry weight now and over time, which features matter, what changed recently.

        Predicting changes nothing, so features that vanish while no label comes are found in `predicted`: the instances
        that were predicted since the last one was learned, in any form that `predict_many` takes.
        """
        unlearned = None if predicted is None else to_block(predicted)
        model = cast(AutoModel, self._engine.model)
        features = self.features
        steps, weights = model.weight_history()
        heaviest = sorted(features.items(), key=lambda item: -item[1].weight)[:most]
        recent = model.recent()
        risen = risen_share(self.steps, recent["error"], recent["error_long"])
        weights_now = model.expert_weights()
        return AutoReport(
            steps=self.steps,
            experts=weights_now,
            history_steps=steps,
            history_weights=weights,
            features={name: f.weight for name, f in heaviest},
            changes=changes(self.steps, features, risen, self.unit_changes, unlearned),
            drifts=drifts(model.alarm_records(), model.change_records()),
            notes=tuple(model.notes()),
            recent=recent,
            states={name: ExpertState(weights_now[name], **state) for name, state in model.expert_states().items()},
            wide_columns=tuple(model.wide_columns()),
        )


def _of_edition(edition: int, budget: str, window: int) -> list[Expert]:
    """The experts of an edition; in the second, experts see every level of a column and none is for categories."""
    if edition == 1:
        return first_experts(budget)
    experts = _experts(budget, window, edition)
    if edition == EDITION:
        return experts
    return [
        (name, model, COLUMNS if sees == COLUMNS else EVERYTHING, *rest)
        for name, model, sees, *rest in experts
        if name != "categories"
    ]


def _experts(budget: str, window: int = 20_000, edition: int = EDITION) -> list[Expert]:
    """(name, model, what it sees, when it may be paused, most columns or 0; to start with: temperature, part in the
    stack, variance of that part). Parts and variances are those of the stacks of the development streams.
    """
    linear = RenewedModel(lambda: AROWRule(10.0))
    recent = AdditiveRule(3.0, 0, 100.0)
    additive = RenewedModel(lambda: AdditiveRule(30.0, 20_000))
    bayes = RenewedModel(lambda: GaussianNBModel(1.0))
    frequencies = RenewedModel(FrequencyModel)
    categories = CategoriesModel(10.0)
    if budget == "fast":
        return [
            ("linear", linear, EVERYTHING, NEVER, 0, 2.0, 0.8, 1.5),
            ("linear, recent", recent, EVERYTHING, NEVER, 0, 2.0, 0.0, 0.5),
            ("additive", additive, BOUNDED, NEVER, 0, 2.0, 0.8, 0.8),
            ("naive Bayes", bayes, BOUNDED, NEVER, 0, 0.5, 0.07, 0.02),
            ("presence", PresenceModel(), COLUMNS, NEVER, 0, 1.0, 0.1, 0.5),
            ("class frequencies", frequencies, EVERYTHING, NEVER, 0, 1.0, -0.2, 1.2),
            ("categories", categories, EVERYTHING, NEVER, 0, 1.0, 0.0, 0.5),
        ]
    latent = OVFMModel(Copula(max_dense=64), AdditiveRule(30.0, 0), AROWRule(10.0, 65), latent_only=True)
    trees = _trees(30 if budget == "best" else 10, window, edition)
    experts: list[Expert] = [
        ("linear", linear, EVERYTHING, NEVER, 0, 2.0, -0.3, 1.0),
        ("linear, recent", recent, EVERYTHING, NEVER, 0, 2.0, 0.0, 0.5),
        ("additive", additive, BOUNDED, NEVER, 0, 2.0, 0.35, 0.8),
        ("naive Bayes", bayes, BOUNDED, NEVER, 0, 0.5, 0.03, 0.02),
        ("presence", PresenceModel(), COLUMNS, NEVER, 0, 1.0, 0.1, 0.5),
        ("class frequencies", frequencies, EVERYTHING, NEVER, 0, 1.0, -0.4, 1.6),
        ("linear, full", AROWRule(10.0, 128), BOUNDED, EARLY, 0, 2.0, 0.2, 0.8),
        ("neighbours", NeighboursModel(5, 500, single=edition > 2), BOUNDED, EARLY, 0, 1.0, 0.1, 0.06),
        ("latent", latent, BOUNDED, 64, 1_024, 2.0, 1.3, 2.8),
        ("evolving map", made("cwfe", max_dense=128), BOUNDED, 128, 1_024, 2.0, -0.15, 0.5),
        ("Gaussian", GaussianModel(65), BOUNDED, 64, 1_024, 0.3, 0.08, 0.04),
        ("window forest", trees, BOUNDED, EARLY, 0, 1.0, 0.3, 0.1),
        ("recall", RecallRule(10.0), EVERYTHING, LATE, 0, 2.0, 0.0, 0.3),
        ("recall, additive", RecallRule(30.0, True, 150.0), EVERYTHING, LATE, 0, 2.0, 0.0, 0.3),
        ("categories", categories, EVERYTHING, NEVER, 0, 1.0, 0.0, 0.5),
    ]
    if budget == "best":
        experts.append(
            ("neighbours, many", NeighboursModel(10, 1_000, single=edition > 2), BOUNDED, EARLY, 0, 1.0, 0.1, 0.06)
        )
        experts.append(("additive, bold", AdditiveRule(10.0, 20_000), BOUNDED, EARLY, 0, 2.0, 0.0, 0.5))
    return experts


def _trees(count: int, window: int, edition: int = EDITION) -> WindowForestModel:
    """A window of at most so many rows that stops growing at 100,000 numbers (1.2 MB), but not below 1,000 rows.

    Rows of at most 12 values go on to the full window: they take little, and long streams gain most from it. In the
    second edition the window had 10,000 rows.
    """
    settings: dict[str, Any] = {"columns": 2.0, "cuts": 16, "min_leaf": 2, "smoothing": 1.0, "seed": 0}
    most, narrow = (window, 12.0) if edition > 2 else (min(window, 10_000), 0.0)
    return WindowForestModel(trees=count, window=most, numbers=100_000, narrow=narrow, **settings)
