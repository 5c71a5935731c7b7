"""Learners for which it is information that a feature is absent."""

from varifold.variation.ovfiv import OVFIV

__all__ = ["OVFIV"]
