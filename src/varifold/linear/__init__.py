"""Linear learners: one weight a feature and label."""

from varifold.linear.additive import Additive
from varifold.linear.arow import AROW
from varifold.linear.olvf import OLVF

__all__ = ["AROW", "OLVF", "Additive"]
