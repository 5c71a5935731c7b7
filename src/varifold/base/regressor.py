"""Base class of all regressors in the library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from river import base as river_base

from varifold._engine.conformal.levels import Conformal
from varifold._engine.data.block import Block
from varifold._engine.engine import Engine
from varifold._engine.targets.real_target import RealTarget
from varifold.base import frames
from varifold.base.blocks import check_block, learned_block, to_block, with_numbers
from varifold.base.coverages import Interval
from varifold.base.declared import declared
from varifold.base.estimator import Name
from varifold.base.learner import Instance, Task, checked_schedule
from varifold.base.predictor import VaryingPredictor

__all__ = ["VaryingRegressor"]


@declared(kw_only=True)
class VaryingRegressor(VaryingPredictor, river_base.Regressor):
    """A regressor for streams whose features appear and vanish.

    An instance is a mapping of feature names (str or int) to values. A missing key, None and NaN all mean *absent*;
    0.0 is a value; a str value ``v`` of feature ``f`` is the indicator feature ``f=v``. Features are never declared:
    the learner adds new ones when they first appear. Targets are finite numbers; None and NaN mean that the target is
    not known, anything else is rejected and the learner does not change. Values and targets beyond 1e150 count as 1e150
    (with their sign), because squares of larger ones overflow. Targets are scaled online as inputs are: learning
    ``a y + b`` instead of ``y`` (a > 0) gives ``a`` times the prediction plus ``b``. A learner is for one thread at a
    time; to predict from several threads, give each its own copy.

    A method is decorated with `declared`, declares its parameters as fields and supplies ``_parameters`` (their
    constraints), ``_model`` (its compiled mathematics, a `RegressionModel`) and optionally river's hook
    ``_unit_test_params``, which yields the parameter sets to test.

    Parameters
    ----------
    scale
        As in `VaryingClassifier`, for features only. Targets are always scaled.
    fit_intercept, clip, max_features, evict
        See `VaryingClassifier`.
    coverages
        Shares of the targets, each in (0, 1), that intervals should contain: ``(.8, .95)``. ``()`` costs nothing; with
        any, each instance is also predicted before it is learned. See `predict_interval_one`.

    """

    _task: ClassVar[Task] = "regression"
    _engine: Engine = field(init=False)

    def _make_engine(self) -> Engine:
        conformal = Conformal(self.coverages, two_sided=True) if self.coverages else None
        return Engine(self._model(), RealTarget(conformal), **self._intake())

    # ------------------------------------------------------------------ one instance

    def predict_one(self, x: Instance) -> float:
        """Predict the target of an instance; 0.0 before any target was learned. Changes nothing."""
        prediction: float = self._engine.predict_one(x)
        return prediction

    def predict_interval_one(self, x: Instance, coverage: float = 0.9) -> Interval:
        """Predict an interval, `low` and `high`, that contains the target with the given coverage.

        The coverage is one of `coverages`. It holds along the stream and adapts to drift (adaptive conformal
        inference); the width depends on which features are present, so that it also holds while sensors are silent. The
        interval contains the prediction and the intervals of smaller coverages. Infinite before two targets were
        learned. Changes nothing.

        Examples
        --------
        >>> from varifold import AROWRegressor
        >>> model = AROWRegressor(coverages=(0.5, 0.9))
        >>> for step in range(300):
        ...     model.learn_one({"heat": step % 7}, 20.0 + 2.0 * (step % 7) + step % 5)
        >>> inner, outer = (model.predict_interval_one({"heat": 3}, coverage) for coverage in (0.5, 0.9))
        >>> outer.low < inner.low < model.predict_one({"heat": 3}) < inner.high < outer.high
        True

        """
        place = self._coverage_index(coverage)
        return Interval(*self._engine.bounds_one(x)[place])

    def explain_one(self, x: Instance, *, by_column: bool = False) -> dict[Name, float]:
        """Return the contribution of each feature to the prediction, largest first; they sum to ``predict_one(x)``.

        With `by_column` the string values of a column are summed under the column's name. The part that no feature
        contributes, mainly the mean of the targets, is listed last, as ``"(intercept)"``; a feature with such a name is
        listed as ``"feature (intercept)"``.
        """
        parts, others = self._engine.explain_one(x)
        return self._explanation(parts, others, by_column)

    # ------------------------------------------------------------------ many instances

    def _learned_block(self, X: Any, y: Iterable[Any] | None, w: Iterable[float] | None) -> Block:
        return with_numbers(learned_block(X, y, w, self._knows, numeric=True))

    def predict_many(self, X: Any) -> Any:
        """Return what `predict_one` returns for each instance.

        Return a Series for a pandas or polars frame (pandas: with the frame's index), an Array for a pyarrow table, and
        a list otherwise.
        """
        predictions, _ = self._engine.run(to_block(X), learn=False)
        return frames.label_column(predictions.tolist(), X)

    def predict_learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> Any:
        """Predict each instance, then learn it: the prequential loop in compiled code.

        Return the predictions in the form of `predict_many`.
        """
        predictions, _ = self._engine.run(self._learned_block(X, y, w))
        return frames.label_column(predictions.tolist(), X)

    def predict_interval_many(self, X: Any, coverage: float = 0.9) -> Any:
        """Return what `predict_interval_one` returns for each instance.

        Return a frame of the same library with the columns low and high for a frame, and a list otherwise.
        """
        place = self._coverage_index(coverage)
        _, bounds = self._engine.run(to_block(X), learn=False, bounds=True)
        return frames.interval_table(bounds[:, place], X)

    def run_intervals(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Run `run_block` and also return the intervals predicted before learning: rows x coverages x (low, high)."""
        check_block(block)
        if not self.coverages:
            self._coverage_index(0.9)
        predictions, bounds = self._engine.run(
            with_numbers(block), schedule=checked_schedule(schedule), bounds=True, memos=memos
        )
        return predictions, bounds

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None, memos: list[bytes | None] | None = None
    ) -> np.ndarray[Any, Any]:
        """Predict and learn a block, for evaluation; return one prediction per row, NaN for rows not predicted.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it, and -(n + i + 1), of n rows, learns it without its
        target) models targets that arrive late or never. With `memos`, a list with an entry per row, predicting a row
        of the schedule replaces its entry, and learning it uses that, as `memo_one` and `learn_one` do.
        """
        check_block(block)
        predictions: np.ndarray[Any, Any]
        predictions, _ = self._engine.run(with_numbers(block), schedule=checked_schedule(schedule), memos=memos)
        return predictions
