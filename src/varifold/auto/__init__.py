"""The default learner: the library's own families as experts, combined by what they earn."""

from varifold.auto.classifier import AutoClassifier
from varifold.auto.report import AutoReport, Drift

__all__ = ["AutoClassifier", "AutoReport", "Drift"]
