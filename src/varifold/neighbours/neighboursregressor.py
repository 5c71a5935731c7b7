"""NeighboursRegressor: the mean target of the most similar recent instances."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer
from varifold.base.regressor import VaryingRegressor
from varifold.neighbours._neighboursregressor import NeighboursRegression


@declared
class NeighboursRegressor(VaryingRegressor):
    """Mean target of the nearest of the last instances, compared on the features that both have.

    It needs no form for how the target depends on the features and forgets what is older than its window.
    Choose it when alike instances come again and there are not too many irrelevant features.

    Parameters
    ----------
    k
        Neighbours that count.
    window
        Instances remembered.
    scale, clip, max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* The distance is that of `varifold.Neighbours`. The mean of all targets counts as one more neighbour. Of
    an instance with more than 512 features the first 512 slots are kept. `explain_one` returns by how much the
    prediction would fall without a feature; the rest is under the intercept.

    *Cost.* O(window x present) to predict, O(present) to learn. An explanation takes a prediction per
    feature; of instances of more than 512 features, only those with the largest values are explained.

    Examples
    --------
    >>> from varifold import NeighboursRegressor
    >>> model = NeighboursRegressor()
    >>> for step in range(400):
    ...     a, b = step % 7 - 3, step % 5 - 2
    ...     model.learn_one({"a": a, "b": b}, 10.0 * a * b)
    >>> model.predict_one({"a": 3, "b": 2}) > 40 > model.predict_one({"a": 3, "b": 0}) > -20
    True

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"k": Integer(1, 64), "window": Integer(1, 1_000_000)}
    _cost = "O(window x present)"

    k: int = 5
    window: int = 500
    fit_intercept: bool = field(default=True, init=False)

    def _model(self) -> NeighboursRegression:
        return NeighboursRegression(self.k, self.window)
