"""Anomaly detectors: unusual values, combinations, neighbourhoods and absences, learned without labels.

It imports `copula`, `neighbours`, `base` and the engine.
"""

from varifold.anomaly.autodetector import AutoDetector
from varifold.anomaly.copuladetector import CopulaDetector
from varifold.anomaly.isolationdetector import IsolationDetector
from varifold.anomaly.neighboursdetector import NeighboursDetector
from varifold.anomaly.taildetector import TailDetector

__all__ = ["AutoDetector", "CopulaDetector", "IsolationDetector", "NeighboursDetector", "TailDetector"]
