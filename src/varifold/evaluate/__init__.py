"""Prequential evaluation: predict, score, then learn; our learners and river's, delayed labels, repeats."""

from varifold.evaluate.metrics import METRICS
from varifold.evaluate.periods import Period
from varifold.evaluate.predictions import Predictions
from varifold.evaluate.prequential import prequential
from varifold.evaluate.repeat import repeat
from varifold.evaluate.result import Curve, LabelScores, Result, Summary

__all__ = [
    "METRICS",
    "Curve",
    "LabelScores",
    "Period",
    "Predictions",
    "Result",
    "Summary",
    "prequential",
    "repeat",
]
