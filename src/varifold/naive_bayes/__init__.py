"""Naive Bayes: the features present are independent given the label.

One file per method, its kernel next to it. It imports `base` and the engine.
"""

from varifold.naive_bayes.gaussiannb import GaussianNB
from varifold.naive_bayes.nb3 import NB3

__all__ = ["NB3", "GaussianNB"]
