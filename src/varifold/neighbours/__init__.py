"""Nearest neighbours, compared on the features that both instances have.

It imports `base` and the engine.
"""

from varifold.neighbours.neighbours import Neighbours
from varifold.neighbours.neighboursregressor import NeighboursRegressor

__all__ = ["Neighbours", "NeighboursRegressor"]
