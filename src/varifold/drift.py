"""Detect change in a stream of numbers."""

from varifold._numeric.adwin import ADWIN

__all__ = ["ADWIN"]
