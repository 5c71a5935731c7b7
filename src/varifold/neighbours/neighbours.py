"""Neighbours: the vote of the most similar recent instances."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer
from varifold.neighbours._neighbours import NeighboursModel


@declared
class Neighbours(VaryingClassifier):
    """Nearest neighbours among the last instances, compared on the features that both have.

    The one learner here that needs no form for the boundary between classes; it finds interactions that an additive
    learner cannot, and forgets what is older than its window. Choose it when similar instances recur
    and there are not too many irrelevant features.

    Parameters
    ----------
    k
        Neighbours that vote.
    window
        Instances remembered.
    scale, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *No paper.* The distance of two instances is the mean squared difference of their scaled values over the features
    they share, shrunk towards 2 (that of unrelated standardised values) as if two more features had been compared:
    a large overlap counts for more than a small one. The vote is shrunk to the class frequencies by one vote. Of an
    instance with more than 512 features the first 512 slots are kept.

    `explain_one` returns by how much the score would fall without a feature; the rest is under the intercept.

    *Cost.* O(window x present) to predict, O(present) to learn. An explanation takes a prediction per
    feature; of instances of more than 512 features, only those with the largest values are explained.

    Examples
    --------
    >>> from varifold import Neighbours
    >>> model = Neighbours()
    >>> for step in range(200):
    ...     a, b = step % 7 / 3 - 1, step % 5 / 2 - 1
    ...     model.learn_one({"a": a, "b": b}, a * b > 0)
    >>> [model.predict_one({"a": a, "b": b}) for a, b in ((1, 1), (-1, -1), (1, -1))]
    [True, True, False]

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"k": Integer(1, 64), "window": Integer(1, 1_000_000)}
    _cost = "O(window x present)"
    _native_multiclass = True

    k: int = 5
    window: int = 500
    fit_intercept: bool = field(default=True, init=False)

    def _model(self) -> NeighboursModel:
        return NeighboursModel(self.k, self.window)
