"""WindowForest: randomised trees over the last labelled instances."""

from __future__ import annotations

from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.learner import UnscaledLearner
from varifold.forest._windowforest import WindowForestModel
from varifold.forest.window_trees import WindowTrees


@declared
class WindowForest(WindowTrees, UnscaledLearner, VaryingClassifier):
    """Average randomised trees over the most recent labelled instances, regrown one at a time.

    Choose it if the label depends on several features jointly (a pair of categories, a threshold that depends on
    another value), if absence itself may be informative, and if the concept may drift: it forgets what left its window.
    Values enter only through thresholds, so units and outliers do not matter.

    Parameters
    ----------
    trees
        Number of trees; their probabilities are averaged.
    window
        Maximum number of labelled instances per tree. A longer window costs memory, but hardly any time.
    columns
        Columns tried at each split: one more than this number times the square root of the columns present.
    cuts
        Values drawn for each column tried; thresholds are the midpoints between numbers, levels are tried directly.
    min_leaf
        Minimum number of instances on either side of a split; at least one per 16 labels.
    smoothing
        Weight, in instances, of the parent's probabilities in each node.
    seed
        Seed of the columns and values drawn.
    max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    Notes
    -----
    *No paper.* A tree is grown greedily by Gini impurity on the last L instances. Each node draws about 2 √m + 1 of
    the m columns of its instances, and a few thresholds (numbers) or levels (strings) of each. Instances in which the
    column is absent go to the purer side; the presence of a column is a candidate split as well. A string column is one
    column: a different level is an observed "no", not an absence. If nothing was absent while the tree grew, absent
    values follow the majority. A level that was never learned counts as absent.

    A new tree starts every L / (trees + 1) instances and grows a few nodes per instance; once complete, it replaces the
    oldest tree. All nodes keep counting labels. L grows by one per instance, up to `window`, so trees become deeper
    while the stream is stable. Errors above the usual rate accumulate (CUSUM); if the sum is too large to be chance, L
    falls back to the instances since the sum began to rise, and new trees are grown. The trees from before stay for 500
    instances, in case that the drift does not last: both kinds are weighted by exp of their summed probabilities of the
    true label, with a memory of about 50 instances, and then those that are behind are dropped. A node with more than
    250 instances chooses its split from 250 of them, one with at most `cuts` / 2 tries all of their values.

    `explain_one` follows the paths: each split adds the change of the label's probability to its column, present or
    ``"name (absent)"``, rescaled so that the contributions and the intercept sum to the log probability. Values are
    used unscaled. The weight of a feature, which ``evict="lightest"`` compares, is the decrease of impurity by its
    splits, with most weight on recent trees.

    *Cost.* O(trees depth (labels + log present)) to predict; learning adds O(trees depth √present log present). A tree
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
