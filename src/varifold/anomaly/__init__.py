"""Anomaly detectors: unusual values, combinations, neighbourhoods and absences, learned without labels.

It imports `copula`, `neighbours`, `base` and the engine.
"""

from varifold.anomaly.autodetector import AutoDetector
from varifold.anomaly.copuladetector import CopulaDetector
from varifold.anomaly.halfspacetrees import HalfSpaceTrees
from varifold.anomaly.isolationdetector import IsolationDetector
from varifold.anomaly.loda import LODA
from varifold.anomaly.neighboursdetector import NeighboursDetector
from varifold.anomaly.presencedetector import PresenceDetector
from varifold.anomaly.taildetector import TailDetector
from varifold.anomaly.xstream import XStream

__all__ = [
    "LODA",
    "AutoDetector",
    "CopulaDetector",
    "HalfSpaceTrees",
    "IsolationDetector",
    "NeighboursDetector",
    "PresenceDetector",
    "TailDetector",
    "XStream",
]
