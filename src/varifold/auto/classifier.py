"""AutoClassifier: the learner to start with, and usually to stay with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from varifold.auto._auto import AutoModel
from varifold.auto.experts import classifier_experts
from varifold.auto.report import AutoReport, ExpertState, changes, drifts, risen_share
from varifold.base.blocks import to_block
from varifold.base.classifier import VaryingClassifier
from varifold.base.costs import check_one_rule
from varifold.base.estimator import undisturbed
from varifold.base.params import Constraint, OneOf, Real


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
    _window = 20_000
    _names: list[str] | None = None
    """The experts held, if not all of the budget's."""

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
        experts = classifier_experts(self.budget, self._window)
        chosen = [expert for expert in experts if self._names is None or expert.name in self._names]
        guard = {"guard": 0.0} if self.objective == "log_loss" else {}
        return AutoModel(chosen, threshold=self.threshold, **guard)

    def _fill_early(self) -> None:
        """Take a window that is full within the stream of a check; for a learner that has learned nothing."""
        self._window = 200
        self._engine = self._make_engine()

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "experts": cast(AutoModel, self._engine.model).names}

    def _apply_header(self, header: Mapping[str, Any]) -> None:
        """Choose the experts that the file holds."""
        super()._apply_header(header)
        self._names = header.get("experts")
        self._engine = self._make_engine()
        if self._names != cast(AutoModel, self._engine.model).names:
            raise ValueError(f"the file holds the experts {self._names!r}; this version does not have all of them")

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
