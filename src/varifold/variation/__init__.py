"""Learners that use the absence of features as information.

One file per method, its kernel next to it. It imports `linear`, `naive_bayes`, `base` and the engine.
"""

from varifold.variation.ovfiv import OVFIV
from varifold.variation.variation import Variation

__all__ = ["OVFIV", "Variation"]
