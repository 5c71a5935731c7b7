"""WindowForestRegressor: randomised regression trees over the most recent instances."""

from __future__ import annotations

from varifold.base.declared import declared
from varifold.base.learner import UnscaledLearner
from varifold.base.regressor import VaryingRegressor
from varifold.forest._windowforestregressor import WindowForestRegression
from varifold.forest.window_trees import WindowTrees


@declared
class WindowForestRegressor(WindowTrees, UnscaledLearner, VaryingRegressor):
    """Average randomised regression trees over the most recent instances, regrown one at a time.

    Choose it if the target depends on several features jointly (a threshold that depends on another value, a pair of
    categories), if absence itself may be informative, and if the concept may drift: it forgets what left its window.
    Values enter only through thresholds, so units and outliers of features do not matter.

    Parameters
    ----------
    trees
        Number of trees; their predictions are averaged.
    window
        Maximum number of instances per tree. A longer window costs memory, but hardly any time.
    columns
        Columns tried at each split: one more than this number times the square root of the columns present.
    cuts
        Values drawn for each column tried; thresholds are the midpoints between numbers, levels are tried directly.
    min_leaf
        Minimum number of instances on either side of a split.
    smoothing
        Weight, in instances, of the parent's prediction in each node; at a root, of the mean of all targets.
    seed
        Seed of the columns and values drawn.
    max_features, evict, coverages
        See `varifold.VaryingRegressor`.

    Notes
    -----
    *No paper.* `varifold.WindowForest` for regression: the same trees, window and treatment of absence. Among the drawn
    thresholds and levels, the split with the largest decrease of the squared error is chosen,

        S_l^2 / W_l + S_r^2 / W_r - S^2 / W,

    where W is the weight of the instances on the left, on the right and on both sides, and S the weighted sum of their
    targets. A node predicts (W m + s p) / (W + s), where m is the mean of the targets that reached it, including those
    since the tree was grown, p the prediction of its parent and s the smoothing.

    Drift is detected if errors exceed the usual for too long to be chance (CUSUM); then old and new trees compete as in
    `varifold.WindowForest`. Errors are measured in units of four times the typical error and capped at 1. An outlying
    target enters the means of its nodes and the global mean; `AutoRegressor` clips such targets before its forest
    learns them.

    `explain_one` follows the paths: each split adds the change of the node's prediction to its column, present or
    ``"name (absent)"``. Values are used unscaled. The weight of a feature, which ``evict="lightest"`` compares, is the
    share of squared deviations that its splits explain, with most weight on recent trees.

    *Cost.* O(trees depth log present) to predict; learning adds O(trees depth √present log present). A tree grows node
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
