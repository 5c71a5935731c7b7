"""Learners for which it is information that a feature is absent."""

from varifold.variation.ovfiv import OVFIV
from varifold.variation.variation import Variation

__all__ = ["OVFIV", "Variation"]
