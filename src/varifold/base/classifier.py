"""Base class of all classifiers in the library."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal, cast

import numpy as np
from river import base as river_base

from varifold._engine.conformal.levels import Conformal
from varifold._engine.data.block import Block
from varifold._engine.engine import Engine
from varifold._engine.targets.class_target import ClassTarget
from varifold._engine.targets.decision import Decision
from varifold.base import frames
from varifold.base.blocks import check_block, learned_block, to_block
from varifold.base.costs import OBJECTIVES, Costs, check_one_rule, plain_costs
from varifold.base.declared import declared
from varifold.base.estimator import Name
from varifold.base.label_count import too_many_labels
from varifold.base.learner import INTERCEPT, Instance, Task, checked_schedule
from varifold.base.params import AnyOf, Boolean, Constraint, OneOf
from varifold.base.predictor import VaryingPredictor
from varifold.errors import LabelError, UnknownNameError

__all__ = ["INTERCEPT", "Instance", "Name", "VaryingClassifier"]


@declared(kw_only=True)
class VaryingClassifier(VaryingPredictor, river_base.Classifier):
    """A classifier for streams whose features appear and vanish.

    An instance is a mapping of feature names (str or int) to values. A missing key, None and NaN all mean *absent*;
    0.0 is a value; a str value ``v`` of feature ``f`` is the indicator feature ``f=v``; values beyond 1e150 count as
    1e150 (with their sign). Features and labels are never declared: the learner adds new ones when they first appear.
    A learner is for one thread at a time; to predict from several threads, give each its own copy.

    A method is decorated with `declared`, declares its parameters as fields and supplies ``_parameters`` (their
    constraints), ``_model`` (its compiled mathematics) and optionally river's hook ``_unit_test_params``, which yields
    the parameter sets to test.

    Parameters
    ----------
    scale
        ``"robust"`` (running mean and deviation of the observed values without outliers), ``"standard"`` (of all
        observed values), ``"minmax"`` (running range) or ``"none"``. ``"robust"`` suits words, counts, dummies and
        measurements in one stream. It clips values beyond three times the running 90 % quantile of their distance
        from the centre before they enter mean and deviation; a value other than 0 that never varies, or makes up 70 %
        of a feature's values, means presence and counts as 1 (words coded 1.0, word counts), where ``"standard"``
        makes it about 0; and a feature whose values jump and stay, as with another unit, starts its statistics again.
    fit_intercept
        Whether a constant, always present input is added.
    clip
        Bound on the absolute value of a standardised input.
    max_features
        Most features kept; None keeps all.
    evict
        Which features are evicted first when there are more: the ``"oldest"`` (last seen longest ago) or the
        ``"lightest"`` (smallest weights). A sixteenth of `max_features` is evicted at a time.
        If `max_features` is 1,024 or more, a new feature evicts others only when it comes for the fourth time.
    objective
        Which label is predicted; probabilities do not change. ``"accuracy"``: the one with the largest score.
        ``"balanced"``: the one with the largest ratio of probability to frequency so far, for metrics that weight all
        labels equally. ``"log_loss"``: the most probable one, without the majority bias that some methods add while
        they have learned little (here the probabilities are without it, too).
    costs
        Costs of errors, instead of an objective; None for no costs. ``{label: cost}``: the cost (> 0) of missing an
        instance of this label; the prediction maximises cost times probability. ``{true label: {predicted: cost}}``: a
        cost matrix; the prediction minimises the expected cost, and a missing entry is 0 for a correct prediction and
        1 for a wrong one. A label without a cost costs 1. `margins_one` and `explain_one` use the costs, too.
    calibrate
        Whether probabilities are calibrated: a factor on the logits and a bias per label are learned online, and used
        while they have had the smaller log loss recently. The label of the largest score stays the most probable one;
        so the predicted label does not change, unless costs or an objective derive it from the probabilities. The
        first 2,000 instances and one in 8 later ones are also predicted before they are learned. Off in `as_in_paper`.
    coverages
        Shares of the true labels, each in (0, 1), that sets should contain: ``(.8, .95)``. ``()`` costs nothing; with
        any, each instance is also predicted before it is learned. See `predict_set_one`.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "objective": OneOf(*OBJECTIVES),
        "costs": AnyOf(Costs(), None),
        "calibrate": Boolean(),
    }
    _task: ClassVar[Task] = "classification"
    _native_multiclass: ClassVar[bool] = False
    _engine: Engine = field(init=False)

    objective: str = "accuracy"
    costs: Mapping[Any, Any] | None = None
    calibrate: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.costs = plain_costs(self.costs)

    @classmethod
    def _paper_params(cls) -> dict[str, Any]:
        return {**super()._paper_params(), "calibrate": False}

    def _make_engine(self) -> Engine:
        return Engine(self._model(), self._target(), **self._intake())

    def _target(self) -> ClassTarget:
        """Make the engine's target: labels, the decision between them, and sets if there are coverages."""
        conformal = Conformal(self.coverages, two_sided=False) if self.coverages else None
        return ClassTarget(self._decision(), conformal, self.calibrate)

    def _decision(self) -> Decision:
        """Return the rule that chooses a label from the probabilities."""
        given = {"objective": self.objective != "accuracy", "costs": self.costs is not None}
        check_one_rule(type(self).__name__, given)
        return Decision(self.objective, plain_costs(self.costs))

    # ------------------------------------------------------------------ one instance

    def predict_one(self, x: Instance) -> Any:  # type: ignore[override]  # river's **kwargs mean nothing here
        """Predict the label of an instance; None before any label was learned. Changes nothing."""
        return self._engine.predict_one(x)

    def predict_proba_one(self, x: Instance) -> dict[Any, float]:  # type: ignore[override]
        """Return the probability of each label; empty before any label was learned. Changes nothing."""
        return self._engine.predict_proba_one(x)

    def predict_set_one(self, x: Instance, coverage: float = 0.9) -> set[Any]:
        """Predict a set of labels that contains the true label with the given coverage.

        The coverage is one of `coverages`. It holds along the stream and adapts to drift (adaptive conformal
        inference); the sets depend on which features are present, so that it also holds while sensors are silent. The
        set of a larger coverage contains that of a smaller one. A set may be empty: a learner that is right more often
        than the coverage requires leaves out its least certain predictions. Empty before any label was learned. Changes
        nothing.

        Examples
        --------
        >>> from varifold import GaussianNB
        >>> model = GaussianNB(coverages=(0.9, 0.99))
        >>> for step in range(300):
        ...     model.learn_one({"load": step % 10}, "high" if step % 10 + step % 3 > 6 else "low")
        >>> model.predict_set_one({"load": 9}), sorted(model.predict_set_one({"load": 5}, 0.99))
        ({'high'}, ['high', 'low'])

        """
        place = self._coverage_index(coverage)
        labels: set[Any] = self._engine.bounds_one(x)[place]
        return labels

    def margins_one(self, x: Instance) -> dict[Any, float]:
        """Return the score of each label; the label with the largest is predicted. Changes nothing.

        With ``objective="balanced"`` or costs by label: the logarithm of probability times cost. With a cost matrix:
        minus the expected cost.
        """
        return self._engine.margins_one(x)

    def explain_one(self, x: Instance, label: Hashable = None, *, by_column: bool = False) -> dict[Name, float]:
        """Return the contribution of each present feature to a label's score, largest first.

        With `by_column` the string values of a column are summed under the column's name.

        The contributions sum to ``margins_one(x)[label]``; the default label is the predicted one. The part that no
        feature contributes is ``"(intercept)"``. With ``objective="balanced"`` or costs by label, the logarithm of
        the label's cost is listed as ``"(decision)"`` and the intercept includes the difference between score and
        log-probability. With a cost matrix the margin, minus an expected cost, is not a sum over features: it is
        listed as ``"(minus expected cost)"``, and ``"(decision)"`` is minus the score that the features explain. A
        feature with such a name is listed as ``"feature (decision)"``.
        """
        index = -1 if label is None else self._class_index(label)
        parts, others = self._engine.explain_one(x, index)
        return self._explanation(parts, others, by_column)

    def _class_index(self, label: Hashable) -> int:
        try:
            return {known: i for i, known in enumerate(self.classes)}[label]
        except (KeyError, TypeError):  # not learned, or not hashable
            raise UnknownNameError(
                f"the label {label!r} has not been learned; known labels: {self.classes!r}"
            ) from None

    # ------------------------------------------------------------------ many instances

    def _learned_block(self, X: Any, y: Iterable[Any] | None, w: Iterable[float] | None) -> Block:
        """Convert X to a block to learn from; the first labels next to a frame must look like classes."""
        block = learned_block(X, y, w, self._knows)
        if frames.is_frame(X) and not self.classes:
            described = too_many_labels(label for label in block.y if label is not None)
            if described is not None:
                raise LabelError(
                    f"{described}; AutoRegressor predicts numbers; learn_many(to_block(X, y)) learns each as a class"
                )
        return block

    def predict_many(self, X: Any) -> Any:
        """Return what `predict_one` returns for each instance.

        Return a Series for a pandas or polars frame (pandas: with the frame's index), an Array for a pyarrow table, and
        a list otherwise.
        """
        frames.check_labels(self.classes, X)
        classes, _, _ = self._engine.run(to_block(X), learn=False)
        return frames.label_column(cast(ClassTarget, self._engine.target).labels_of(classes), X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return what `predict_proba_one` returns for each instance.

        Return a frame of the same library for a frame (pandas: with the same index), with one column per label, named
        ``str(label)``, and a list of dicts otherwise.
        """
        block = to_block(X)
        labels = self.classes
        if not labels:
            return frames.probability_table(labels, np.zeros((len(block), 0)), X)
        frames.check_columns(labels, X)
        _, probabilities, _ = self._engine.run(block, learn=False, probabilities=True)
        return frames.probability_table(labels, probabilities, X)

    def predict_set_many(self, X: Any, coverage: float = 0.9) -> Any:
        """Return what `predict_set_one` returns for each instance.

        Return a frame of bools of the same library for a frame (pandas: with the same index), with one column per
        label, named ``str(label)``, and a list of sets otherwise.
        """
        place = self._coverage_index(coverage)
        block = to_block(X)
        labels = self.classes
        frames.check_columns(labels, X)
        _, _, sets = self._engine.run(block, learn=False, bounds=True)
        return frames.set_table(labels, sets[:, place], X)

    def run_sets(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Run `run_block` and also return the sets predicted before learning, as bools: rows x coverages x labels."""
        check_block(block)
        if not self.coverages:
            self._coverage_index(0.9)
        classes, probabilities, sets = self._engine.run(
            block, schedule=checked_schedule(schedule), probabilities=True, bounds=True, memos=memos
        )
        return classes, probabilities, sets

    def predict_learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> Any:
        """Predict each instance, then learn it: the prequential loop in compiled code.

        Return the predictions in the form of `predict_many`.
        """
        block = self._learned_block(X, y, w)
        frames.check_labels([*self.classes, *block.labels.values], X)
        classes, _, _ = self._engine.run(block)
        return frames.label_column(cast(ClassTarget, self._engine.target).labels_of(classes), X)

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predict and learn a block, for evaluation; return indices into `classes` (-1: none yet) and probabilities.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it, and -(n + i + 1), of n rows, learns it without its
        label) models labels that arrive late or never. With `memos`, a list with an entry per row, predicting a row of
        the schedule replaces its entry, and learning it uses that, as `memo_one` and `learn_one` do.
        """
        check_block(block)
        classes, probabilities, _ = self._engine.run(
            block, schedule=checked_schedule(schedule), probabilities=True, memos=memos
        )
        return classes, probabilities

    # ------------------------------------------------------------------ looking inside

    @property
    def classes(self) -> list[Any]:
        """Labels in the order in which they were first learned."""
        return list(cast(ClassTarget, self._engine.target).labels)

    def _multiclass_form(self) -> Literal["native", "one-vs-rest", "none"]:
        return "native" if self._native_multiclass else "one-vs-rest"

    @property
    def _multiclass(self) -> bool:
        return True
