"""Base of the margin and logistic methods: a two-class rule whose scores may be biased to the majority class."""

from __future__ import annotations

from typing import Any, ClassVar

from varifold._engine.models.model import Model
from varifold._engine.models.one_vs_rest import BinaryRule
from varifold.base.classifier import VaryingClassifier
from varifold.base.declared import declared
from varifold.base.params import Boolean, Constraint
from varifold.linear._majority_bias import MajorityBias


@declared(kw_only=True)
class LinearClassifier(VaryingClassifier):
    """Base of margin and logistic methods, which define ``_rule`` and their parameters.

    Parameters
    ----------
    majority_bias
        Whether a bias towards the majority class is added to the scores while always predicting that class would be
        correct more often than the scores are. Not in any of the papers. It changes scores, never weights, and is off
        without intercept and with ``objective="log_loss"``. On small or noisy sets it keeps the error near that of
        the majority class or below.
        Turn it off inside river's ``OneVsRestClassifier``: each label against the rest has a majority, "the rest", and
        the biases of the two-class learners are not comparable (ImageSegments, MacroF1 of OLVF: 71.3 with it, 80.7
        without; without the wrapper, which no learner here needs, 80.4).
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"majority_bias": Boolean()}
    _paper: ClassVar[dict[str, Any]] = {"scale": "none", "fit_intercept": False, "majority_bias": False}

    majority_bias: bool = True

    def _rule(self) -> BinaryRule:
        """Create a compiled rule of the method."""
        raise NotImplementedError(f"{type(self).__name__} must define _rule()")

    def _model(self) -> Model:
        rule = self._rule()
        is_biased = self.majority_bias and self.fit_intercept and self.objective != "log_loss"
        return MajorityBias(rule) if is_biased else rule
