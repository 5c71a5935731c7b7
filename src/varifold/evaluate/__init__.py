"""Prequential evaluation: predict, score, then learn; our learners and river's, delayed labels, repeats."""

from varifold.evaluate.metrics import METRICS
from varifold.evaluate.prequential import prequential
from varifold.evaluate.repeat import repeat
from varifold.evaluate.result import Curve, Result, Summary

__all__ = ["METRICS", "Curve", "Result", "Summary", "prequential", "repeat"]
