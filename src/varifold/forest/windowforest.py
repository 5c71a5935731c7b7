"""WindowForest: randomised trees over the last labelled instances."""

from __future__ import annotations

from varifold.base.declared import UnscaledClassifier, declared
from varifold.forest._windowforest import WindowForestModel
from varifold.forest.base import WindowTrees


@declared
class WindowForest(WindowTrees, UnscaledClassifier):
    """Randomised trees over the last labelled instances, one grown again at a time.

    Choose it when the label depends on several features together (a pair of categories, a threshold that depends on
    another value), when absence itself may say something, and when the rule may change: it forgets what has left its
    window. It sees values only through thresholds: units and outliers do not matter.

    Parameters
    ----------
    trees
        Trees that answer, by the mean of their probabilities.
    window
        Labelled instances that a tree is grown on at the most. A longer window costs memory, hardly any time.
    columns
        Columns tried at each split, one more than this many square roots of those present.
    cuts
        Values drawn for each column tried: thresholds are the midpoints between them, levels are tried themselves.
    min_leaf
        Instances on either side of a split, at the least; never fewer than one for every 16 labels.
    smoothing
        Instances' worth of the parent's probabilities mixed into every node.
    seed
        Of the columns and values drawn.
    max_features, evict, objective, costs, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *No paper.* A tree is grown on the last L instances, greedily by Gini impurity: at each node about 2 √m + 1 of the m
    columns of its instances are drawn, and a few thresholds (of a number) or levels (of a string) of each. Instances
    in which the column is absent go left or right, whichever is purer; whether the column is there is a split of its
    own. A string column is one column: another level is an observed "no", not an absence. When nothing was absent
    while the tree grew, absent values go the way of most. A level that was never learned counts as absent.

    A tree is begun every L / (trees + 1) instances and grows a few nodes with each instance; when it is grown it
    replaces the oldest. Meanwhile all nodes go on counting labels. L grows by one with every instance, up to `window`:
    trees get deeper while the stream is stable. Errors beyond the usual rate are summed up (CUSUM); when the sum is too
    large to be chance, L falls back to the instances since the sum began to rise, and all trees are soon replaced.
    Nodes of more than 250 instances are split by what 250 of them say.

    `explain_one` follows the paths: every split adds the change of the label's probability to its column, present or
    ``"name (absent)"``, stretched so that the parts and the intercept sum to the log of the probability. Values are
    used as they come: there is no scaler. The weight of a feature, by which ``evict="lightest"`` goes, is the decrease
    of impurity by its splits, recent trees counting most.

    *Cost.* O(trees depth (labels + log present)) to predict; to learn, O(trees depth √present log present) more. A tree
    grows node by node: a single instance may take O(window + 250 √present log present). Memory O(window (present +
    trees labels / min_leaf)).

    Examples
    --------
    >>> from varifold import WindowForest
    >>> model = WindowForest()
    >>> for step in range(400):
    ...     x = {"shape": ["round", "square"][step % 2], "colour": ["red", "blue"][step // 2 % 2], "size": step % 7}
    ...     model.learn_one(x, (x["shape"] == "round") == (x["colour"] == "red"))
    >>> [model.predict_one({"shape": "round", "colour": colour}) for colour in ("red", "blue")]
    [True, False]

    """

    _native_multiclass = True

    def _model(self) -> WindowForestModel:
        return WindowForestModel(**self._settings())
