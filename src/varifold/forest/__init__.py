"""Forests: stumps on single features, voting by weight."""

from varifold.forest.orf3v import ORF3V

__all__ = ["ORF3V"]
