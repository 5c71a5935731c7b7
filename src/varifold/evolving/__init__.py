"""Learners for streams whose feature space is replaced: sensors swapped, forms redesigned.

One file per method, its kernel next to it. It imports `linear`, `base` and the engine, no other family of its layer.
"""

from varifold.evolving.cwfe import CWFE
from varifold.evolving.fesl import FESL
from varifold.evolving.feslregressor import FESLRegressor
from varifold.evolving.pafe import PAFE

__all__ = ["CWFE", "FESL", "PAFE", "FESLRegressor"]
