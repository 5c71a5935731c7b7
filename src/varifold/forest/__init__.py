"""Forests: stumps per feature that vote by weight, and trees over a window of recent instances.

May import `linear`, `naive_bayes`, `neighbours` and everything below them.
"""

from varifold.forest.orf3v import ORF3V
from varifold.forest.windowforest import WindowForest
from varifold.forest.windowforestregressor import WindowForestRegressor

__all__ = ["ORF3V", "WindowForest", "WindowForestRegressor"]
