"""Common base class of classifiers and regressors: learning from a truth, at once or late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from varifold._engine.data.block import Block
from varifold.base.declared import declared
from varifold.base.estimator import Name
from varifold.base.importances import Importance, measured
from varifold.base.learner import Instance, VaryingLearner

__all__ = ["VaryingPredictor"]


@declared(kw_only=True)
class VaryingPredictor(VaryingLearner):
    """A learner that predicts a truth, a label or a number: a `VaryingClassifier` or a `VaryingRegressor`."""

    def learn_one(self, x: Instance, y: Any, w: float = 1.0, memo: bytes | None = None) -> None:
        """Learn one instance and its label or target with sample weight w (0 does nothing).

        A y of None or NaN is not known: the learner learns from the features alone if it can, and ignores the instance
        otherwise (`traits.unlabelled`). `memo` is what `memo_one` returned when the instance was predicted.
        """
        self._engine.learn_one(x, y, w, memo)

    def memo_one(self, x: Instance) -> bytes:
        """Return the memo of the prediction that the instance gets now, for `learn_one` once its truth arrives.

        What judges predictions (weights of experts, calibration, sets, intervals) should judge those that were issued.
        A truth that arrives late is learned after others, which may reveal it: the learner would seem better than it
        was. Keep the memo with the instance, for example in a database. Empty for a learner that judges nothing.
        Changes nothing.
        """
        memo: bytes = self._engine.memo_one(x)
        return memo

    def memo_fits(self, x: Instance, memo: bytes) -> bool:
        """Return whether `learn_one` accepts the memo of an instance; not if a learner of another shape made it."""
        fits: bool = self._engine.memo_fits(memo)
        return fits

    def learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> None:
        """Learn instances in order, in compiled code.

        X is a Block (which holds its labels or targets), an iterable of dicts, a data frame (pandas, polars, pyarrow),
        a SciPy sparse matrix or a 2-D array. The resulting state is bit-identical to that of `learn_one` on each
        instance: None and NaN in y are truths that are not known.
        """
        self._engine.run(self._learned_block(X, y, w), predict=False)

    def _learned_block(self, X: Any, y: Iterable[Any] | None, w: Iterable[float] | None) -> Block:
        """Convert X to a block to learn from."""
        raise NotImplementedError

    def column_importances(
        self, X: Any, y: Iterable[Any] | None = None, *, repeats: int = 5, seed: int = 0
    ) -> dict[Name, Importance]:
        """Measure how much the loss on these instances increases when the cells of one column are permuted.

        The loss is the log loss, of a regressor the absolute error. By column, largest first: an `Importance` with
        `loss`, its standard `error` and `matters`. Pass a few hundred instances with truths that have *not* been
        learned, such as the next ones of the stream: on learned ones a column that was only memorised looks important.
        ``prequential(track="permutation")`` does so along a stream. `repeats` is how often each column is permuted.
        Nothing is learned.
        """
        return measured(self, X, y, repeats=repeats, seed=seed)
