"""Linear learners: one weight a feature and label."""

from varifold.linear.additive import Additive
from varifold.linear.arow import AROW
from varifold.linear.ftrladp import FTRLADP
from varifold.linear.gaussiannb import GaussianNB
from varifold.linear.ogd import OGD
from varifold.linear.olvf import OLVF
from varifold.linear.pa import PA

__all__ = ["AROW", "FTRLADP", "OGD", "OLVF", "PA", "Additive", "GaussianNB"]
