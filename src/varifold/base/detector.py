"""Base class of all anomaly detectors in the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from river import base as river_base

from varifold._engine.data.block import Block
from varifold._engine.engine import Engine
from varifold._engine.targets.score_target import ScoreTarget
from varifold.base import frames
from varifold.base.blocks import check_block, to_block
from varifold.base.declared import declared
from varifold.base.estimator import Name
from varifold.base.learner import Instance, Task, VaryingLearner, checked_schedule
from varifold.base.params import Constraint, Real, validate
from varifold.base.text_columns import warn_new_texts

__all__ = ["VaryingDetector"]


@declared(kw_only=True)
class VaryingDetector(VaryingLearner, river_base.AnomalyDetector):
    """An anomaly detector for streams whose features appear and vanish; it learns without labels.

    An instance is a mapping of feature names (str or int) to values. A missing key, None and NaN all mean *absent*;
    0.0 is a value; a str value ``v`` of feature ``f`` is the indicator feature ``f=v``. Features are never declared.
    The larger the score of an instance, the more unusual it is compared with those learned before. A feature that is
    absent, or new, is no evidence in itself, and an instance without known features has the score 0; only
    `PresenceDetector`, and `AutoDetector` for columns that are hardly ever absent, look at absence.

    A method is decorated with `declared`, declares its parameters as fields and supplies ``_parameters`` (their
    constraints) and ``_model``: a compiled `Model` whose ``scores`` writes one number.

    Parameters
    ----------
    max_features
        Most features kept; None keeps all.
    evict
        Which features are evicted first when there are more: the ``"oldest"`` (last seen longest ago) or the
        ``"lightest"`` (smallest weights). A sixteenth of `max_features` is evicted at a time.
        If `max_features` is 1,024 or more, a new feature evicts others only when it comes for the fourth time.
    rate
        Share of the instances that are alarms, in (0, 1], where no other rate is given: `is_anomaly_one`, the server.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"rate": Real(0, 1, open_low=True)}
    _task: ClassVar[Task] = "detection"
    _engine: Engine = field(init=False)

    scale: str = field(default="none", init=False)
    fit_intercept: bool = field(default=False, init=False)
    clip: float = field(default=3.0, init=False)
    coverages: Sequence[float] = field(default=(), init=False)
    rate: float = 0.01

    def _make_engine(self) -> Engine:
        return Engine(self._model(), ScoreTarget(), **self._intake())

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Instance) -> None:
        """Learn one instance."""
        self._engine.learn_one(x)

    def score_one(self, x: Instance) -> float:
        """Return how unusual an instance is: the larger, the more. Changes nothing."""
        score: float = self._engine.predict_one(x)
        return score

    def p_value_one(self, x: Instance) -> float:
        """Return the smallest rate of alarms at which the instance is one. Changes nothing.

        The p-value of normal instances is at most ``rate`` with a frequency of ``rate``, for rates from .001 on:
        overall, while features are silent and after new ones appeared. It is computed from the last 1,000 scores
        (online conformal prediction) and adapts to drift. Anomalies among the instances learned count as well: of a
        stream with many of them a share of about ``rate`` is reported, the most unusual ones. Instances with equal
        scores are alarms together or not at all. 1 before any instance was learned.
        """
        p: float = self._engine.bounds_one(x)
        return p

    def score_and_p_value_one(self, x: Instance) -> tuple[float, float]:
        """Return what `score_one` and `p_value_one` return, at the cost of one of them. Changes nothing."""
        both: tuple[float, float] = self._engine.predict_with_bounds_one(x)
        return both

    def is_anomaly_one(self, x: Instance, rate: float | None = None) -> bool:
        """Return whether the instance is so unusual that about this share of the instances is. Changes nothing.

        Without a rate it is the parameter `rate`.

        Examples
        --------
        >>> from varifold import TailDetector
        >>> model = TailDetector()
        >>> for step in range(500):
        ...     model.learn_one({"heat": step * 37 % 100, "load": step * 61 % 100})
        >>> model.is_anomaly_one({"heat": 900.0, "load": 900.0}), model.is_anomaly_one({"heat": 40.0, "load": 50.0})
        (True, False)

        """
        if rate is None:
            rate = self.rate
        validate(f"{type(self).__name__}.is_anomaly_one", {"rate": Real(0, 1)}, {"rate": rate})
        return self.p_value_one(x) <= rate

    def explain_one(self, x: Instance, *, by_column: bool = False) -> dict[Name, float]:
        """Return the contribution of each feature to the score, largest first; they sum to ``score_one(x)``.

        With `by_column` the string values of a column are summed under the column's name. What is not due to the
        value of one feature has a name in parentheses.
        """
        parts, others = self._engine.explain_one(x)
        return self._explanation(parts, others, by_column)

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any) -> None:
        """Learn instances in order, in compiled code.

        X is a Block, an iterable of dicts, a data frame (pandas, polars, pyarrow), a SciPy sparse matrix or a 2-D
        array. The resulting state is bit-identical to that of `learn_one` on each instance.
        """
        self._engine.run(self._learned_block(X), predict=False)

    def score_many(self, X: Any) -> Any:
        """Return what `score_one` returns for each instance.

        Return a Series for a pandas or polars frame (pandas: with the frame's index), an Array for a pyarrow table,
        and a list otherwise.
        """
        scores, _ = self._engine.run(to_block(X), learn=False)
        return frames.label_column(scores.tolist(), X)

    def p_value_many(self, X: Any) -> Any:
        """Return what `p_value_one` returns for each instance, in the form of `score_many`."""
        _, p = self._engine.run(to_block(X), learn=False, bounds=True)
        return frames.label_column(p.tolist(), X)

    def score_learn_many(self, X: Any) -> Any:
        """Score each instance, then learn it, in compiled code; return the scores in the form of `score_many`."""
        scores, _ = self._engine.run(self._learned_block(X))
        return frames.label_column(scores.tolist(), X)

    def _learned_block(self, X: Any) -> Block:
        block = to_block(X)
        warn_new_texts(block, X, self._knows)
        return block

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Score and learn a block, for evaluation; return scores and p-values by row, NaN for rows not scored.

        A schedule (int64: i + 1 scores row i, -(i + 1) learns it) sets another order.
        """
        check_block(block)
        scores, p = self._engine.run(block, schedule=checked_schedule(schedule), bounds=True)
        return scores, p
