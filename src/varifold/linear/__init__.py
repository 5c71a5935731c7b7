"""Linear learners: one weight per feature and label.

One file per method (`olvf.py`), its kernel next to it (`_olvf.pyx`). It imports `base` and the engine; the families
above use its rules.
"""

from varifold.linear.additive import Additive
from varifold.linear.additiveregressor import AdditiveRegressor
from varifold.linear.arow import AROW
from varifold.linear.arowregressor import AROWRegressor
from varifold.linear.fobos import FOBOS
from varifold.linear.ftrladp import FTRLADP
from varifold.linear.ftrlproximal import FTRLProximal
from varifold.linear.meanregressor import MeanRegressor
from varifold.linear.ocds import OCDS
from varifold.linear.ogd import OGD
from varifold.linear.olids import OLIDS
from varifold.linear.olsf import OLSF
from varifold.linear.olvf import OLVF
from varifold.linear.olvfregressor import OLVFRegressor
from varifold.linear.pa import PA

__all__ = [
    "AROW",
    "FOBOS",
    "FTRLADP",
    "OCDS",
    "OGD",
    "OLIDS",
    "OLSF",
    "OLVF",
    "PA",
    "AROWRegressor",
    "Additive",
    "AdditiveRegressor",
    "FTRLProximal",
    "MeanRegressor",
    "OLVFRegressor",
]
