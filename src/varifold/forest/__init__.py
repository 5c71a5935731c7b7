"""Forests: stumps on single features, voting by weight, and trees over a window of instances."""

from varifold.forest.orf3v import ORF3V
from varifold.forest.windowforest import WindowForest
from varifold.forest.windowforestregressor import WindowForestRegressor

__all__ = ["ORF3V", "WindowForest", "WindowForestRegressor"]
