"""Copula learners: absent features are regressed on those present, in latent normal scores.

May import `linear` and everything below it.
"""

from varifold.copula.copularegressor import CopulaRegressor, Distribution
from varifold.copula.delayed import DelayedOVFM
from varifold.copula.imputer import CopulaImputer
from varifold.copula.ovfm import OVFM

__all__ = ["OVFM", "CopulaImputer", "CopulaRegressor", "DelayedOVFM", "Distribution"]
