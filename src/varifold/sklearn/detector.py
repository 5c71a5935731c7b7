"""VarifoldDetector: any anomaly detector of the library as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from varifold.base.nested import make_learner
from varifold.base.text_columns import warn_texts
from varifold.errors import DataError
from varifold.sklearn.estimator import VaryingEstimator, block_of, rows_of
from varifold.sklearn.extra import OutlierMixin, check_random_state


class VarifoldDetector(OutlierMixin, VaryingEstimator):  # type: ignore[misc]
    """A scikit-learn outlier detector whose columns are identified by name and may change from call to call.

    Columns, absence, strings, order and arrays are handled as by `VarifoldClassifier`. After learning, `fit` scores
    the rows; a share of `contamination` of them is beyond the threshold.

    Parameters
    ----------
    model
        The detector: a text such as ``"autodetector"`` or ``"taildetector:window=100"``, or a detector, which is copied
        without its state. Its parameters are set and searched as ``model__window``.
    contamination
        Share of the rows learned that count as outliers, in (0, .5].
    omitted
        Meaning of the cells that a sparse matrix does not store: ``"absent"`` or ``"zero"``.
    shuffle
        Whether `fit` permutes the rows first; False learns them in their order, as a stream. `partial_fit` always does.
    random_state
        Seed of that permutation.

    Attributes
    ----------
    model_
        The detector: `explain_one`, `p_value_one`, `features`, `save` and the rest of its methods.
    offset_
        Minus the threshold of the scores: `decision_function` is `score_samples` minus it.
    n_features_in_, feature_names_in_
        Columns of the data learned last.

    Examples
    --------
    >>> import pandas as pd
    >>> from varifold.sklearn import VarifoldDetector
    >>> load = [float(i * 37 % 100) for i in range(400)]
    >>> detector = VarifoldDetector("taildetector").fit(pd.DataFrame({"load": load, "heat": [2 * x for x in load]}))
    >>> detector.predict(pd.DataFrame({"load": [50.0, 900.0], "heat": [100.0, 900.0]}))
    array([ 1, -1])

    """

    _task: ClassVar[str] = "detection"

    def __init__(
        self,
        model: Any = "autodetector",
        *,
        contamination: float = 0.1,
        omitted: str = "absent",
        shuffle: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.contamination = contamination
        self.omitted = omitted
        self.shuffle = shuffle
        self.random_state = random_state

    def _new_learner(self) -> Any:
        return self._of_task(make_learner(self.model)) if isinstance(self.model, str) else super()._new_learner()

    def fit(self, X: Any, y: Any = None) -> Self:
        """Start again and learn all rows once, permuted or in their order (`shuffle`); y is ignored."""
        X, names = self._read(X)
        return self._score_and_learn(self._new_learner(), X, names, self.shuffle)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue with more rows in their order; their columns may differ. The threshold is that of these rows."""
        X, names = self._read(X, getattr(self, "_columns", None))
        learner = self._continued()
        return self._score_and_learn(learner, X, names, shuffle=False)

    def _score_and_learn(self, learner: Any, X: Any, names: Any, shuffle: bool) -> Self:
        if not rows_of(X):
            raise DataError("Found array with 0 sample(s) while a minimum of 1 is required.")
        warn_texts(X, learner._knows)
        block = block_of(X, names)
        if shuffle:
            block = block.take(check_random_state(self.random_state).permutation(len(block)))
        learner.learn_many(block)
        scores, _ = learner.run_block(block, np.arange(1, len(block) + 1))
        self._keep_names(names)
        self.model_ = learner
        self.offset_ = float(np.percentile(-scores, 100.0 * self.contamination))
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return minus the score of each row: the smaller, the more unusual."""
        scores, _ = self._outputs(X)
        return -np.asarray(scores, dtype=np.float64)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return `score_samples` less `offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for other rows."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
