"""Prequential evaluation: predict, score, then learn; our learners and river's, delayed labels, repeats."""

from varifold.evaluate.metrics import METRICS
from varifold.evaluate.number_metrics import NUMBER_METRICS
from varifold.evaluate.periods import NumberPeriod, Period
from varifold.evaluate.predictions import NumberPredictions, Predictions
from varifold.evaluate.prequential import prequential
from varifold.evaluate.repeat import repeat
from varifold.evaluate.result import Band, Curve, LabelScores, NumberCurve, NumberResult, Result, Summary
from varifold.evaluate.uncertainty import IntervalScores, SetScores

__all__ = [
    "METRICS",
    "NUMBER_METRICS",
    "Band",
    "Curve",
    "IntervalScores",
    "LabelScores",
    "NumberCurve",
    "NumberPeriod",
    "NumberPredictions",
    "NumberResult",
    "Period",
    "Predictions",
    "Result",
    "SetScores",
    "Summary",
    "prequential",
    "repeat",
]
