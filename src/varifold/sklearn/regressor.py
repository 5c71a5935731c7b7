"""VarifoldRegressor: any regressor of the library as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from varifold.sklearn.estimator import VaryingEstimator
from varifold.sklearn.extra import RegressorMixin


class VarifoldRegressor(RegressorMixin, VaryingEstimator):  # type: ignore[misc]
    """A scikit-learn regressor whose columns are identified by name and may change from call to call.

    Columns, absence, strings, order and arrays are handled as by `VarifoldClassifier`. Targets are finite numbers,
    which the learner scales online.

    Parameters
    ----------
    model
        The learner: a text such as ``"auto"`` or ``"arow:r=1"``, which mean the regressors of these methods,
        ``"autoregressor"`` and ``"arowregressor"`` (`varifold models` lists them), or a learner, which is copied
        without its state. Its parameters are set and searched as ``model__r``.
    omitted
        Meaning of the cells that a sparse matrix does not store: ``"absent"`` or ``"zero"``.
    shuffle
        Whether `fit` permutes the rows first; False learns them in their order, as a stream. `partial_fit` always does.
    random_state
        Seed of that permutation.

    Attributes
    ----------
    model_
        The learner: `explain_one`, `features`, `save` and the rest of its methods.
    n_features_in_, feature_names_in_
        Columns of the data learned last.

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
        """Start again and learn all rows once, permuted or in their order (`shuffle`)."""
        X, names = self._read(X)
        targets = self._targets(X, y, np.float64)
        self._learn(self._new_learner(), X, names, targets, sample_weight, self.shuffle)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue with more rows in their order; their columns may differ."""
        X, names = self._read(X, getattr(self, "_columns", None))
        targets = self._targets(X, y, np.float64)
        learner = self._continued()
        self._learn(learner, X, names, targets, sample_weight, shuffle=False)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row."""
        predictions: NDArray[np.float64] = self._outputs(X)
        return predictions

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Predict low and high bounds for each row, with a learner of this coverage (`auto` has 0.9)."""
        block = self._block(X)
        return np.array(self.model_.predict_interval_many(block, coverage), dtype=np.float64).reshape(len(block), 2)
