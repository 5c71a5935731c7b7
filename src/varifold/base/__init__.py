"""The contract that every learner keeps, and what it is made of."""

from varifold.base.blocks import Block, Labels, Vocabulary, to_block
from varifold.base.classifier import INTERCEPT, VaryingClassifier, load
from varifold.base.registry import models
from varifold.base.traits import Feature, Traits

__all__ = [
    "INTERCEPT",
    "Block",
    "Feature",
    "Labels",
    "Traits",
    "VaryingClassifier",
    "Vocabulary",
    "load",
    "models",
    "to_block",
]
