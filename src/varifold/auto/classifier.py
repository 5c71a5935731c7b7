"""AutoClassifier: the classifier to start with, and usually to stay with."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, ClassVar, cast

from varifold._engine.engine import Engine
from varifold._engine.targets.decision import Decision
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import Expert, classifier_experts
from varifold.auto.learner import MixtureLearner
from varifold.auto.report import AutoReport, ExpertState, drifts, error_rise
from varifold.base.classifier import VaryingClassifier
from varifold.base.costs import check_one_rule
from varifold.base.declared import declared
from varifold.base.estimator import undisturbed
from varifold.base.params import Constraint, OneOf, Real


@declared
class AutoClassifier(MixtureLearner, VaryingClassifier):
    """Default classifier: learners of several kinds at once, each weighted by its track record.

    It needs no tuning and works on any varying stream. Linear, additive and generative learners, trees, one that sees
    only which features are present, and one that remembers recent instances all learn the same stream. Their
    probabilities are calibrated online and mixed by their log loss. `report()` shows the result.

    Parameters
    ----------
    budget
        ``"fast"`` runs the cheap experts; ``"balanced"`` adds full covariance, neighbours, a copula, Gaussians, a
        window forest and two learners that recall earlier values of absent features; ``"best"`` adds more neighbours
        and trees, and a bolder additive learner.
    threshold
        With two labels: the probability from which on the rarer one is predicted, in (0, 1). Lower it when missing
        the rare label costs more than a false alarm. It does not change probabilities. With more labels use `costs`
        or `objective`.
    unlabelled
        What becomes of instances without a label (``learn_one(x, None)``): with ``"learn"`` they join the statistics by
        which values are scaled, and the experts that can learn from them; with ``"ignore"`` nothing happens.
    scale, clip, max_features, evict, objective, costs, coverages
        See `VaryingClassifier`. ``objective="log_loss"`` predicts with the mixture alone, without the guard.

    Notes
    -----
    *No paper.* Experts (`varifold.auto.experts`): diagonal AROW (r = 10), and a second one (r = 3) that forgets all but
    about the last 100 values of a feature; `Additive` (r = 30); Gaussian naive Bayes on values as given; naive Bayes on
    the presence of columns (not on their absence where fewer than an eighth of 256 or more columns are present); the
    class frequencies. From ``"balanced"`` on: AROW with full covariance up to 128 features (diagonal beyond); the 5
    nearest of the last 500 instances; AROW on the latent scores of `OVFM` (64 features); a Gaussian per class (64
    features, covariances learned by online expectation maximisation); `WindowForest` with 10 trees on up to 20,000
    instances (fewer if they have more than 12 values: 100,000 values); two that recall the 64 columns seen last, linear
    and additive (150 values): running means of a column's values next to its value and, while it is absent, in its
    place, and how long it has been absent; and gradient descent on up to 32 groups of columns that are near copies of
    each other (correlation .9), one number per group, the mean of those present. With ``"best"`` 30 trees, the 10
    nearest of 1,000 and `Additive` with r = 10.

    *Combination.* Each expert's logits are multiplied by a temperature, and a stack adds up those of all experts; both
    are learned by an extended Kalman filter. Two exponentially weighted means (log loss, rate 1/2) of the calibrated
    experts and the stack differ in how much weight is shared out after each instance, 1% or .1%: the first follows
    changes, the second small differences. The mixture is their mean, weighted in the same way (.1%): over T instances
    its log loss exceeds that of the best of the k experts and the stack by at most 2 ln(2) + 2 ln(k + 4) + 4 T ln(1 /
    (1 - .001)). A final temperature calibrates the mixture. A label learned once is judged by the experts that count
    labels, until new labels have come in runs.

    *Guard.* Until the mixture has made two more right predictions than the most frequent label, or its log loss is 2
    below that of the class frequencies, it predicts another label only if its probability leads by 1.5 times the lead
    of the most frequent label in frequency. Each error by which the predictions are behind that label raises this by a
    half; until 50 labels have judged predictions (late ones may count less) it is a part of that.

    *Pausing and limits.* Expensive experts whose recent log loss is .05 above the mixture's, and that hardly move the
    stack, are paused: after 200 instances (those that recall: 500) they are evaluated on every 8th instance until
    they do better. None is paused during the first 1,000 instances while the mixture's log loss exceeds .9 of the
    entropy of the labels: an expert that is of no use yet may be the one that is needed. Copula and Gaussians are
    disabled beyond 1,024 columns, and if their matrices, one per label, would have more than 65,536 numbers in all
    (16 labels with 64 features). Beyond 256 labels all expensive experts are disabled, as some of them hold a
    matrix per label. `report()` lists them.

    *Categories.* A string column with more than 32 levels is wide. The linear experts see every level of it; all
    others see the levels that hold at least 1/32 of its instances and, in place of each other level, one number: the
    difference between the log-odds of the label in that level and in the column, counted before the instance and
    smoothed by 10 instances. One more expert adds up these numbers, for any number of labels. Limits count columns, not
    levels.

    *Drift.* The first AROW, `Additive`, naive Bayes and the class frequencies restart when the stream changes:
    `varifold.drift.ADWIN` (delta = .5) watches their errors, and a rise begins a trial in which a new copy learns next
    to the old one and up to three earlier copies are evaluated again. The first copy that leads by more than 1.5
    standard deviations of a sign test and one instance takes over; the old one is kept, for concepts that recur. Then
    the variance of the expert's temperature is reset and those of the stack are raised. `report().drifts` lists these
    restarts with their evidence, and every rise of the error of the predictions.

    *Many labels.* The stack has one bias per label, whose covariance takes memory with the square of the labels and
    time with their cube; beyond 64 labels it has none.

    *Without a label.* The copula of the latent scores, the Gaussians and naive Bayes (by expectation maximisation) and
    the two experts that recall values learn instances without a label; the others do not, and temperatures, stack,
    weights and guard judge all of them by labels alone. With 5 % of the labels the error was 6 % lower on average than
    without such instances (docs/few-labels.md).

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
        "unlabelled": OneOf("learn", "ignore"),
    }
    _cost = "O(present); budget='balanced': O(500 present + min(known, 128)^2)"
    _native_multiclass = True
    _uses_absence = True
    _window = 20_000

    budget: str = "balanced"
    threshold: float = 0.5
    _: KW_ONLY
    unlabelled: str = "ignore"
    fit_intercept: bool = field(default=True, init=False)
    calibrate: bool = field(default=False, init=False)  # the mixture calibrates its probabilities itself

    def _decision(self) -> Decision:
        rules = {
            "objective": self.objective != "accuracy",
            "costs": self.costs is not None,
            "threshold": self.threshold != 0.5,
        }
        check_one_rule(type(self).__name__, rules)
        return super()._decision()

    def _table(self) -> tuple[Expert, ...]:
        return classifier_experts(self.budget, self._window)

    def _model(self) -> ClassificationMixture:
        guard = {"guard": 0.0} if self.objective == "log_loss" else {}
        unlabelled = self.unlabelled == "learn"
        return ClassificationMixture(self._experts(), threshold=self.threshold, learn_unlabelled=unlabelled, **guard)

    def _make_engine(self) -> Engine:
        model, target = self._model(), self._target()
        model.decision = target.decision
        return Engine(model, target, **self._intake())

    @undisturbed
    def report(self, most: int = 8, predicted: Any = None) -> AutoReport:
        """Summarise the stream: weights of the experts over time, influential features, recent changes.

        Predicting changes nothing, so features that vanish while no label arrives show up in `predicted` only: the
        instances predicted since the last one was learned, in any form that `predict_many` accepts. `most` limits the
        number of features.
        """
        model = cast(ClassificationMixture, self._engine.model)
        recent = model.recent()
        summary = self._summary(most, predicted, error_rise(self.steps, recent["error"], recent["error_long"]))
        weights = summary["experts"]
        return AutoReport(
            **summary,
            recent=recent,
            drifts=drifts(model.error_rises(), model.restart_records()),
            states={name: ExpertState(weights[name], **state) for name, state in model.expert_states().items()},
            wide_columns=tuple(model.wide_columns()),
        )
