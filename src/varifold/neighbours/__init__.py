"""Nearest neighbours, compared on the features that both instances have."""

from varifold.neighbours.neighbours import Neighbours

__all__ = ["Neighbours"]
