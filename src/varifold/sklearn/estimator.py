"""Base class of both estimators: their learner, its parameters as ``model__...``, and data keyed by column name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from varifold.base import Block, to_block
from varifold.base.nearest import nearest
from varifold.base.params import OneOf, validate
from varifold.base.registry import models
from varifold.base.spec import ModelSpec, parse_model, regressor_for
from varifold.base.text_columns import warn_texts
from varifold.errors import DataError, LabelError, ParameterError, VarifoldError
from varifold.sklearn.extra import (
    BaseEstimator,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    check_random_state,
    check_sample_weight,
    column_or_1d,
)
from varifold.sklearn.inputs import Names, named_columns

_NESTED = "model__"
_NEEDED = ("clone", "learn_many", "run_block")


class VaryingEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator around a learner: see `VarifoldClassifier`."""

    model: Any
    omitted: str
    shuffle: bool
    random_state: Any
    _task: ClassVar[str] = "classification"

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also those of the learner, as ``model__NAME``."""
        params: dict[str, Any] = super().get_params(deep=False)
        return {**params, **self._nested_params()} if deep else params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``model__NAME`` replaces the learner by one with that parameter changed."""
        nested = {name.removeprefix(_NESTED): params.pop(name) for name in list(params) if name.startswith(_NESTED)}
        known = self._get_param_names()
        for name in params:
            if name not in known:
                raise ParameterError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. "
                    f"Valid parameters are: {known!r}; those of the learner are written {_NESTED}NAME"
                    f"{nearest(name, known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        if nested:
            self.model = self._with(nested)
        return self

    def _with(self, nested: Mapping[str, Any]) -> Any:
        learner = self._new_learner()
        known = list(learner._get_params())
        for name in nested:
            if name not in known:
                raise ParameterError(
                    f"Invalid parameter {_NESTED + name!r}: {type(learner).__name__} has no {name!r}; "
                    f"it has: {', '.join(known)}{nearest(name, known)}"
                )
        return learner.clone(dict(nested))

    def _nested_params(self) -> dict[str, Any]:
        """Return the learner's parameters; none if `model` names no learner, which `fit` reports."""
        try:
            learner = self._new_learner()
        except VarifoldError:
            return {}
        return {_NESTED + name: getattr(learner, name) for name in learner._get_params()}

    def _new_learner(self) -> Any:
        """Make the learner that `model` names, without state."""
        if isinstance(self.model, str):
            return self._of_task(self._spec_of_task(parse_model(self.model, imports=True))())
        if isinstance(self.model, type) or not all(hasattr(self.model, name) for name in _NEEDED):
            raise ParameterError(
                "The 'model' parameter must be a learner of varifold or the text of one, such as 'auto' or "
                f"'arow:r=1'. Got {self.model!r} instead."
            )
        return self._of_task(self.model.clone())

    def _continued(self) -> Any:
        """Return the learner of earlier calls; a new one at the first."""
        return self.model_ if hasattr(self, "model_") else self._new_learner()

    def _spec_of_task(self, spec: ModelSpec) -> ModelSpec:
        """Return the specification; for regression ``"arow"`` means its regressor."""
        if self._task == "regression" and f"{spec.name}regressor" in models:
            return regressor_for(spec)
        return spec

    def _of_task(self, learner: Any) -> Any:
        """Return the learner; raise an error if it is for the other task."""
        task = getattr(learner, "_task", "classification")
        if task != self._task:
            raise ParameterError(f"{type(learner).__name__} is for {task}; {type(self).__name__} is for {self._task}")
        return learner

    # ------------------------------------------------------------------ data

    def _read(self, X: Any, known: Names | None = None) -> tuple[Any, Names | None]:
        """Return X ready for `to_block` and its columns (None for dicts); `known` are the columns learned last."""
        validate(type(self).__name__, {"omitted": OneOf("absent", "zero")}, {"omitted": self.omitted})
        return named_columns(X, self, omitted=self.omitted, known=known)

    def _keep_names(self, names: Names | None) -> None:
        """Set `n_features_in_` and `feature_names_in_`, from the data learned last."""
        self._columns = names
        for attribute in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(attribute, None)
        if names is None:
            return
        self.n_features_in_ = len(names)
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _targets(self, X: Any, y: Any, dtype: Any = None) -> NDArray[Any]:
        """Return one label or number per row, as an array."""
        if y is None:
            raise LabelError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        targets: NDArray[Any] = column_or_1d(y, dtype=dtype, warn=True)
        assert_all_finite(targets, input_name="y")
        check_consistent_length(np.empty(rows_of(X)), targets)
        if not len(targets):
            raise DataError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return targets

    def _learn(self, learner: Any, X: Any, names: Names | None, y: NDArray[Any], weights: Any, shuffle: bool) -> None:
        """Learn the rows, permuted or in their order, and keep the learner."""
        warn_texts(X, learner._knows)
        block = block_of(X, names, y, weights, numeric=self._task == "regression")
        if shuffle:
            block = block.take(check_random_state(self.random_state).permutation(len(block)))
        learner.learn_many(block)
        self._keep_names(names)
        self.model_ = learner

    def _block(self, X: Any) -> Block:
        """Return the rows to predict as a block."""
        check_is_fitted(self, "model_")
        return block_of(*self._read(X, self._columns))

    def _outputs(self, X: Any) -> Any:
        """Return what the learner predicts for each row; nothing is learned."""
        block = self._block(X)
        return self.model_.run_block(block, np.arange(1, len(block) + 1))

    @property
    def features_(self) -> dict[str | int, Any]:
        """Return, for every feature, when it was first and last seen, its count and weight."""
        check_is_fitted(self, "model_")
        return dict(self.model_.features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def block_of(
    X: Any, names: Names | None, y: NDArray[Any] | None = None, sample_weight: Any = None, *, numeric: bool = False
) -> Block:
    """Make a block of what `_read` returned, with labels (numbers if `numeric`) and weights."""
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, np.empty((rows_of(X), 1)), dtype=np.float64)
    has_own_names = not (isinstance(X, np.ndarray) or hasattr(X, "tocsr"))
    labels = None if y is None else y.tolist()
    return to_block(X, labels, weights, names=None if has_own_names else names, numeric=numeric)


def rows_of(X: Any) -> int:
    """Return the number of instances."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
