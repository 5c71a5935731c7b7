"""Prequential evaluation: predict, score, then learn; any learner, delayed labels, repeats, metrics.

It imports streams, ensembles, `base` and the layers below; learners are passed as arguments.
"""

from varifold.evaluate.detection import DetectionScores, detection_scores
from varifold.evaluate.metrics import METRICS
from varifold.evaluate.periods import Period, RegressionPeriod
from varifold.evaluate.predictions import Predictions, RegressionPredictions
from varifold.evaluate.prequential import prequential
from varifold.evaluate.regression_metrics import REGRESSION_METRICS
from varifold.evaluate.repeat import repeat
from varifold.evaluate.result import Band, Curve, LabelScores, RegressionCurve, RegressionResult, Result, Summary
from varifold.evaluate.uncertainty import IntervalScores, SetScores

__all__ = [
    "METRICS",
    "REGRESSION_METRICS",
    "Band",
    "Curve",
    "DetectionScores",
    "IntervalScores",
    "LabelScores",
    "Period",
    "Predictions",
    "RegressionCurve",
    "RegressionPeriod",
    "RegressionPredictions",
    "RegressionResult",
    "Result",
    "SetScores",
    "Summary",
    "detection_scores",
    "prequential",
    "repeat",
]
