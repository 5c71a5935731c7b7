"""VarifoldRegressor: any regressor of the library as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from varifold.base import Block
from varifold.errors import DataError, LabelError
from varifold.sklearn.base import VaryingEstimator, block_of, rows_of
from varifold.sklearn.extra import (
    RegressorMixin,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)
from varifold.sklearn.inputs import Names


class VarifoldRegressor(RegressorMixin, VaryingEstimator):  # type: ignore[misc]
    """A regressor for scikit-learn whose columns are known by name and may change from call to call.

    What `VarifoldClassifier` says of columns, absence, strings, order and arrays holds here, too. Targets are finite
    numbers, which the learner scales online.

    Parameters
    ----------
    model
        What learns: a text such as ``"auto"`` or ``"arow:r=1"``, which mean the regressors of these methods,
        ``"autoregressor"`` and ``"arowregressor"`` (`varifold models` lists them), or a learner, which is copied
        without what it has learned. Its parameters are set and searched as ``model__r``.
    omitted
        What the cells are that a sparse matrix does not store: ``"absent"`` or ``"zero"``.
    shuffle
        Whether `fit` permutes the rows first; False learns them in their order, as a stream. `partial_fit` always does.
    random_state
        Seed of that permutation.

    Attributes
    ----------
    model_
        The learner: `explain_one`, `features`, `save` and the rest of its methods.
    n_features_in_, feature_names_in_
        Columns of the data that was learned last.

    Examples
    --------
    >>> import pandas as pd
    >>> from varifold.sklearn import VarifoldRegressor
    >>> load = [float(i % 10) for i in range(200)]
    >>> reg = VarifoldRegressor().fit(pd.DataFrame({"load": load}), [3 * x + 5 for x in load])
    >>> reg.predict(pd.DataFrame({"load": [4.0], "never seen": ["x"]})).round()
    array([17.])

    """

    _task: ClassVar[str] = "regression"

    def __init__(
        self, model: Any = "autoregressor", *, omitted: str = "absent", shuffle: bool = True, random_state: Any = 0
    ) -> None:
        self.model = model
        self.omitted = omitted
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from nothing: one pass over the rows, permuted or in their order (`shuffle`)."""
        return self._learn(self._new_learner(), *self._read(X), y, sample_weight, in_order=self._in_order)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue with more rows in their order; their columns may be others."""
        learner = self.model_ if hasattr(self, "model_") else self._new_learner()
        return self._learn(learner, *self._read(X, getattr(self, "_columns", None)), y, sample_weight)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The prediction for each row."""
        check_is_fitted(self, "model_")
        block = block_of(*self._read(X, self._columns))
        found: NDArray[np.float64] = self.model_.run_block(block, np.arange(1, len(block) + 1))
        return found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Where the target of each row lies: low and high, of a learner with this coverage (`auto` has 0.9)."""
        check_is_fitted(self, "model_")
        block = block_of(*self._read(X, self._columns))
        return np.array(self.model_.predict_interval_many(block, coverage), dtype=np.float64).reshape(len(block), 2)

    def _learn(
        self,
        learner: Any,
        X: Any,
        names: Names | None,
        y: Any,
        sample_weight: Any,
        in_order: Callable[[Block], Block] = lambda block: block,
    ) -> Self:
        learner.learn_many(in_order(block_of(X, names, self._targets(X, y), sample_weight, numeric=True)))
        self._keep_names(names)
        self.model_ = learner
        return self

    def _targets(self, X: Any, y: Any) -> NDArray[np.float64]:
        """One finite number per row."""
        if y is None:
            raise LabelError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        targets: NDArray[Any] = column_or_1d(y, dtype=np.float64, warn=True)
        assert_all_finite(targets, input_name="y")
        check_consistent_length(np.empty(rows_of(X)), targets)
        if not len(targets):
            raise DataError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return targets
