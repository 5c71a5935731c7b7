"""IsolationDetector: instances that few random splits isolate."""

from __future__ import annotations

from typing import ClassVar

from varifold.anomaly._isolation import IsolationModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["IsolationDetector"]


@declared
class IsolationDetector(VaryingDetector):
    """Isolation forest over the last instances, for features that come and go.

    The strongest single detector here on complete data. Choose it if values are numbers and nothing else is known.

    Parameters
    ----------
    trees
        Trees of the forest.
    window
        Last instances of which a tree is built.
    seed
        Of the random splits.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* The paper builds its trees once, from random subsets. Here a tree is built from the
    last `window` instances and replaces the oldest one: every 4 instances until the window was filled twice, then 8
    trees per window. A node splits by a feature of one of its instances, chosen at random. An instance without the
    feature goes to a side at random when the tree is built; when it is scored it goes to both, in proportion to the
    others, down to a weight of 1/8. The score is the mean depth of all instances minus that of this one, averaged
    over the trees, instead of a power of 2. Strings are left out.

    `explain_one` credits each split with the decrease of the expected depth; at an absent feature that is 0.

    *Cost.* O(trees x log window) to score, about O(log window) per instance to learn; absent features multiply the
    first by up to 8.

    Examples
    --------
    >>> from varifold import IsolationDetector
    >>> model = IsolationDetector()
    >>> for step in range(500):
    ...     model.learn_one({"a": step * 37 % 100, "b": step * 61 % 90})
    >>> model.score_one({"a": 300.0}) > 1 > model.score_one({"a": 50.0})
    True

    References
    ----------
    F. T. Liu, K. M. Ting, Z.-H. Zhou. Isolation forest. ICDM 2008.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "trees": Integer(1, 1000),
        "window": Integer(2, 4096),
        "seed": Integer(0),
    }
    _cost = "O(trees x log window)"

    trees: int = 32
    window: int = 256
    seed: int = 0

    def _model(self) -> IsolationModel:
        return IsolationModel(self.trees, self.window, self.seed)
