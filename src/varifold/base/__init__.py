"""What every learner is built on: the classifier class, parameters, the registry, blocks and model files."""

from varifold.base.blocks import Block, Labels, Vocabulary, to_block
from varifold.base.classifier import INTERCEPT, NO_FEATURES, VaryingClassifier, from_bytes, load
from varifold.base.importances import Importance
from varifold.base.python_rule import PythonRule
from varifold.base.registry import models
from varifold.base.traits import Feature, Traits

__all__ = [
    "INTERCEPT",
    "NO_FEATURES",
    "Block",
    "Feature",
    "Importance",
    "Labels",
    "PythonRule",
    "Traits",
    "VaryingClassifier",
    "Vocabulary",
    "from_bytes",
    "load",
    "models",
    "to_block",
]
