"""HalfSpaceTrees: the mass of a window in random half-spaces."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.anomaly._half_space import HalfSpaceModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["HalfSpaceTrees"]


@declared
class HalfSpaceTrees(VaryingDetector):
    """Half-space trees: instances where few of the last window were.

    Splits do not depend on the values, and no instance is kept: the cost of an instance is bounded and always the same.
    `IsolationDetector` separates slightly better and is faster, but keeps the last instances.

    Parameters
    ----------
    trees
        Trees of the ensemble.
    depth
        Levels of splits.
    window
        Instances of which the mass is used; a new window begins after as many.
    seed
        Of the splits.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* The paper fixes the trees before the stream begins, over all features. Here the trees
    of a window are drawn from the features of the window before: each node splits by a random feature of a random
    instance of it. So a new feature is in the trees after at most one window, and one that is gone leaves them. The
    first windows are shorter (8, 8, 16, 32, ...), and scores are 0 in the first two.

    Values are standardised online; the paper's values in [0, 1] are those between -3 and 3 here. At an absent feature
    an instance is counted on a side at random, in proportion to those that went on before it, and stays at the node if
    there were none. A node's mass is its share of its parent's, so that who stayed there is counted on both sides. The
    score of an instance goes to both sides of an absent feature, in proportion to their masses, down to a weight of
    1/8: absence changes no expectation. (Only present features in a path would compare instances with masses of
    other cells.)

    The score is the mean over all instances of log2(mass + 1) + depth minus that of this one, averaged over the trees,
    instead of the sum of mass x 2^depth. As in the paper, a node with less than a tenth of the window is a leaf.
    Strings are left out.

    `explain_one` credits each split with the decrease of the expected logarithm; at an absent feature that is 0.

    *Cost.* O(trees x depth); absent features multiply scoring by up to 8. Memory grows with trees x 2^depth.

    Examples
    --------
    >>> from varifold import HalfSpaceTrees
    >>> model = HalfSpaceTrees()
    >>> for step in range(600):
    ...     model.learn_one({"a": step * 37 % 100, "b": step * 61 % 90})
    >>> model.score_one({"a": 500.0, "b": -400.0}) > 1 > model.score_one({"a": 50.0, "b": 40.0})
    True

    References
    ----------
    S. C. Tan, K. M. Ting, F. T. Liu. Fast anomaly detection for streaming data. IJCAI 2011.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "trees": Integer(1, 60),
        "depth": Integer(1, 15),
        "window": Integer(1, 100_000),
        "seed": Integer(0),
    }
    _cost = "O(trees x depth)"

    trees: int = 25
    depth: int = 8
    window: int = 250
    seed: int = 0
    scale: str = field(default="standard", init=False)
    clip: float = field(default=8.0, init=False)

    def _model(self) -> HalfSpaceModel:
        return HalfSpaceModel(self.trees, self.depth, self.window, self.seed)
