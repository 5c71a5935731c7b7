"""Common interface of all learners: estimator, classifier, regressor, parameters, registry, blocks, model files.

It imports `_engine` and the layers below it; everything else builds on it. The registry names classes as text, so
that no learner is imported before it is used.
"""

from varifold.base.blocks import Block, Labels, Vocabulary, to_block
from varifold.base.classifier import VaryingClassifier
from varifold.base.coverages import Interval
from varifold.base.detector import VaryingDetector
from varifold.base.importances import Importance
from varifold.base.learner import INTERCEPT, NO_FEATURES, VaryingLearner
from varifold.base.python_rule import PythonRule
from varifold.base.registry import detectors, models
from varifold.base.regressor import VaryingRegressor
from varifold.base.saving import from_bytes, load
from varifold.base.traits import Feature, Traits

__all__ = [
    "INTERCEPT",
    "NO_FEATURES",
    "Block",
    "Feature",
    "Importance",
    "Interval",
    "Labels",
    "PythonRule",
    "Traits",
    "VaryingClassifier",
    "VaryingDetector",
    "VaryingLearner",
    "VaryingRegressor",
    "Vocabulary",
    "detectors",
    "from_bytes",
    "load",
    "models",
    "to_block",
]
