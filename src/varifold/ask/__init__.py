"""Decide for which instances a label is worth its price.

It imports `base` and the layers below; it works with any classifier that has `predict_proba_one`.
"""

from varifold.ask.classifier import AskingClassifier
from varifold.ask.estimate import Estimate
from varifold.ask.policy import POLICIES, AskPolicy, Decision

__all__ = ["POLICIES", "AskPolicy", "AskingClassifier", "Decision", "Estimate"]
