"""NeighboursRegressor: the mean target of the most similar recent instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from varifold.base.params import Constraint, Integer
from varifold.base.regressor import VaryingRegressor
from varifold.neighbours._neighboursregressor import NeighboursRegression


class NeighboursRegressor(VaryingRegressor):
    """Mean target of the nearest of the last instances, compared on the features that both have.

    It needs no form for how the target depends on the features and forgets by itself what is older than its window.
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
    an instance with more than 512 features the first 512 slots are kept. `explain_one` says by how much the prediction
    would fall without a feature; what is left stands under the intercept.

    *Cost.* O(window x present) to predict, O(present) to learn.

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

    def __init__(
        self,
        k: int = 5,
        window: int = 500,
        *,
        scale: str = "standard",
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
        coverages: Sequence[float] = (),
    ) -> None:
        self.k = k
        self.window = window
        super().__init__(
            scale=scale, fit_intercept=True, clip=clip, max_features=max_features, evict=evict, coverages=coverages
        )

    def _model(self) -> NeighboursRegression:
        return NeighboursRegression(self.k, self.window)
