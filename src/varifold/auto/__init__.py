"""The default learner: the library's own families as experts, combined by what they earn."""

from varifold.auto.classifier import AutoClassifier
from varifold.auto.regressor import AutoRegressor
from varifold.auto.report import AutoReport, Change, Drift, ExpertState, RegressionReport

__all__ = ["AutoClassifier", "AutoRegressor", "AutoReport", "Change", "Drift", "ExpertState", "RegressionReport"]
