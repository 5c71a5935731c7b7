"""WindowForestRegressor: randomised trees over the last instances, for numbers."""

from __future__ import annotations

from varifold.base.declared import UnscaledRegressor, declared
from varifold.forest._windowforestregressor import WindowForestRegression
from varifold.forest.base import WindowTrees


@declared
class WindowForestRegressor(WindowTrees, UnscaledRegressor):
    """Randomised regression trees over the last instances, one grown again at a time.

    Choose it when the target depends on several features together (a threshold that depends on another value, a pair
    of categories), when absence itself may say something, and when the rule may change: it forgets what has left its
    window. It sees values only through thresholds: units and outliers of features do not matter.

    Parameters
    ----------
    trees
        Trees that answer, by the mean of what they say.
    window
        Instances that a tree is grown on at the most. A longer window costs memory, hardly any time.
    columns
        Columns tried at each split, one more than this many square roots of those present.
    cuts
        Values drawn for each column tried: thresholds are the midpoints between them, levels are tried themselves.
    min_leaf
        Instances on either side of a split, at the least.
    smoothing
        Instances' worth of the parent's answer mixed into every node's; of the mean of all targets into a root's.
    seed
        Of the columns and values drawn.
    max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* `varifold.WindowForest` for numbers: the same trees, window and handling of absence. A split is the one
    that decreases the squared error most, of the thresholds and levels drawn,

        S_l^2 / W_l + S_r^2 / W_r - S^2 / W,

    with W the weight of the instances on the left, on the right and of both, and S the weighted sum of their targets. A
    node says (W m + s p) / (W + s), where m is the mean of the targets that came by, also since the tree was grown, p
    what its parent says and s the smoothing.

    The rule has changed when errors exceed the usual for too long to be chance (CUSUM). They are counted in four times
    the typical error, as 1 at the most. A target that is far from all others counts in the means of its nodes, and in
    the mean of all: `AutoRegressor` moves such targets before its forest learns them.

    `explain_one` follows the paths: every split adds the change of what the nodes say to its column, present or
    ``"name (absent)"``. Values are used as they come: there is no scaler. The weight of a feature, by which
    ``evict="lightest"`` goes, is the share of the squared deviations that its splits explain, recent trees counting
    most.

    *Cost.* O(trees depth log present) to predict; to learn, O(trees depth √present log present) more. A tree grows node
    by node: a single instance may take O(window + 250 √present log present). Memory O(window (present + trees /
    min_leaf)).

    Examples
    --------
    >>> from varifold import WindowForestRegressor
    >>> model = WindowForestRegressor()
    >>> for step in range(600):
    ...     x = {"shape": ["round", "square"][step % 2], "colour": ["red", "blue"][step // 2 % 2], "size": step % 7}
    ...     model.learn_one(x, 80.0 if (x["shape"] == "round") == (x["colour"] == "red") else 20.0)
    >>> [model.predict_one({"shape": "round", "colour": colour, "size": 3}) > 60 for colour in ("red", "blue")]
    [True, False]

    """

    def _model(self) -> WindowForestRegression:
        return WindowForestRegression(**self._settings())
