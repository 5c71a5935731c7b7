"""Common base class of classifiers, regressors and detectors: shared parameters and capabilities."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from river import base as river_base

from varifold._engine.models.model import Model
from varifold.base.coverages import Coverages, coverage_index, plain_coverages
from varifold.base.declared import declared
from varifold.base.estimator import Estimator, Name, undisturbed
from varifold.base.params import AnyOf, Boolean, Constraint, Integer, OneOf, Real, validate_fields
from varifold.base.traits import Traits
from varifold.errors import DataError, ParameterError

__all__ = ["INTERCEPT", "NO_FEATURES", "Instance", "Task", "VaryingLearner", "is_detector", "is_regressor"]

Instance = Mapping[Any, Any]
Task = Literal["classification", "regression", "detection"]
INTERCEPT = "(intercept)"
NO_FEATURES = (INTERCEPT, "(decision)", "(minus expected cost)")
"""Names in explanations that do not refer to a feature, in the order in which they are listed, last."""


@declared(kw_only=True)
class VaryingLearner(Estimator):
    """A learner for streams whose features appear and vanish; `VaryingClassifier` describes the parameters.

    A method is decorated with `declared`. It declares its own parameters as fields, by position or keyword (those here
    are by keyword only), and supplies ``_parameters`` (their constraints) and ``_model`` (its compiled mathematics).
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "scale": OneOf("standard", "robust", "minmax", "none"),
        "fit_intercept": Boolean(),
        "clip": Real(0, open_low=True),
        "max_features": AnyOf(Integer(1), None),
        "evict": OneOf("oldest", "lightest"),
        "coverages": Coverages(),
    }
    _task: ClassVar[Task]
    _cost: ClassVar[str] = "O(present)"
    _uses_absence: ClassVar[bool] = False
    _uses_values: ClassVar[bool] = True

    _paper: ClassVar[dict[str, Any]] = {}  # parameters that reproduce the method of the paper, without additions

    scale: str = "robust"
    fit_intercept: bool = True
    clip: float = 3.0
    max_features: int | None = None
    evict: str = "oldest"
    coverages: Sequence[float] = ()

    def __post_init__(self) -> None:
        validate_fields(self, self._constraints())
        self.coverages = plain_coverages(self.coverages)
        self._engine = self._make_engine()

    @classmethod
    def as_in_paper(cls, **params: Any) -> Self:
        """Make the method exactly as in its paper, with these parameters and without the library's additions.

        Values are not scaled, there is no intercept unless the paper has one, and no majority bias or presence learner.
        Scale the data as the paper does. Raise ParameterError for a method without a paper.
        """
        return cls(**{**cls._paper_params(), **params})

    @classmethod
    def _paper_params(cls) -> dict[str, Any]:
        own = [parent.__dict__["_paper"] for parent in reversed(cls.__mro__) if parent.__dict__.get("_paper")]
        if not own:
            raise ParameterError(f"{cls.__name__} is of no paper, so that there is no form of it as in a paper")
        return {name: value for part in own for name, value in part.items()}

    def _model(self) -> Model:
        """Make a new compiled model of this method with this learner's parameters."""
        raise NotImplementedError(f"{type(self).__name__} must define _model()")

    def _intake(self) -> dict[str, Any]:
        """Return the parameters of the engine."""
        return {
            "scale": self.scale,
            "clip": self.clip,
            "intercept": self.fit_intercept,
            "max_features": self.max_features,
            "evict": self.evict,
        }

    def _check_one(self, x: Instance, y: Any = None) -> None:
        """Raise what `learn_one` would raise for this instance, and change nothing. y is None for an unknown truth."""
        self._engine.check(x, y)

    def _coverage_index(self, coverage: float) -> int:
        """Return the index of a coverage in `coverages`."""
        return coverage_index(type(self).__name__, self.coverages, coverage)

    @property
    @undisturbed
    def unit_changes(self) -> dict[Name, int]:
        """Features whose values jumped and stayed, as with another unit, and the steps at which that was noticed.

        Only ``scale="robust"`` detects this; it then restarts the feature's statistics.
        """
        space = self._engine.space
        restarts = self._engine.scaler.restarts(space.size)
        return {space.name_of(slot): step for slot, (step, _) in restarts.items()}

    def _multiclass_form(self) -> Literal["native", "one-vs-rest", "none"]:
        """Return how more than two labels are learned."""
        return "none"

    @property
    @undisturbed
    def traits(self) -> Traits:
        """Capabilities, cost, and notes on the current state."""
        notes = tuple(self._engine.model.notes())
        if self.max_features is None:
            notes += ("memory grows with every new feature; max_features bounds it",)
        return Traits(
            multiclass=self._multiclass_form(),
            cost=self._cost,
            bounded_memory=self.max_features is not None,
            uses_absence=self._uses_absence,
            uses_values=self._uses_values,
            randomized="seed" in inspect.signature(type(self)).parameters,
            unlabelled="learned" if learns_unlabelled(self) else "ignored",
            merging=self._engine.model.merging(),
            notes=notes,
            task=self._task,
        )

    def _explanation(
        self, parts: Mapping[Name, float], others: Mapping[Name, float], by_column: bool
    ) -> dict[Name, float]:
        """Join contributions of features and others, largest first; a feature named like another one is prefixed."""
        joined: dict[Name, float] = dict(others)
        for name, part in (self._by_column(parts) if by_column else parts).items():
            while name in joined:
                name = f"feature {name}"
            joined[name] = part
        return dict(sorted(joined.items(), key=lambda item: (_place(item[0]), -abs(item[1]))))

    def _by_column(self, parts: Mapping[Name, float]) -> dict[Name, float]:
        """Sum contributions by column; the levels of a string column are features of one column."""
        space = self._engine.space
        columns: dict[Name, float] = {}
        for name, part in parts.items():
            slot = space.id_of(name)
            column = space.name_of(space.column_of(slot)) if slot > 0 else name
            columns[column] = columns.get(column, 0.0) + part
        return columns


def _place(name: Name) -> int:
    return NO_FEATURES.index(name) if name in NO_FEATURES else -1


@declared(kw_only=True)
class UnscaledLearner(VaryingLearner):
    """A learner that uses raw values: it has no scaler to configure."""

    scale: str = field(default="none", init=False)
    fit_intercept: bool = field(default=True, init=False)
    clip: float = field(default=3.0, init=False)


def is_regressor(learner: Any) -> bool:
    """Return whether a learner, a river pipeline or a class predicts numbers rather than labels."""
    last = getattr(learner, "_last_step", learner)
    return issubclass(last if isinstance(last, type) else type(last), river_base.Regressor)


def learns_unlabelled(learner: Any) -> bool:
    """Return whether `learn_one(x, None)` learns from instances without a label; others declare it by this name."""
    engine = getattr(learner, "_engine", None)
    if engine is None:
        return bool(getattr(learner, "learns_unlabelled", False))
    return bool(engine.model.learns_unlabelled)


def is_detector(learner: Any) -> bool:
    """Return whether a learner, a river pipeline or a class scores anomalies and learns without labels."""
    last = getattr(learner, "_last_step", learner)
    return issubclass(last if isinstance(last, type) else type(last), river_base.AnomalyDetector)


def checked_schedule(schedule: Any) -> NDArray[np.int64] | None:
    """Convert a schedule for `run_block` to an int64 array; raise DataError unless it is one-dimensional, of ints."""
    if schedule is None:
        return None
    steps = np.asarray(schedule)
    if steps.ndim != 1 or (steps.size and steps.dtype.kind not in "iu"):
        raise DataError(
            f"a schedule is a one-dimensional array of ints. Got {steps.ndim} dimensions of {steps.dtype} instead."
        )
    return steps.astype(np.int64)
