"""What the margin and logistic methods share: a rule of two classes whose scores may lean to the commoner one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from varifold._engine.model import BinaryRule, Model
from varifold.base.declared import DeclaredClassifier
from varifold.base.params import Boolean, Constraint
from varifold.linear._majority_bias import LeaningModel


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(DeclaredClassifier):
    """A margin or logistic method: it supplies ``_rule`` and its parameters.

    Parameters
    ----------
    lean
        Whether scores lean to the commoner class for as long as it is right more often than they are. Not in any of
        the papers: it adds to the scores of an instance with intercept, never to the weights, and is off without
        intercept. On small or noisy sets it keeps the answers about as good as those of the class frequencies.
    scale, fit_intercept, clip, max_features, evict
        See `VaryingClassifier`.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"lean": Boolean()}
    _before: ClassVar[dict[str, Any]] = {"lean": False}
    _paper: ClassVar[dict[str, Any]] = {"scale": "none", "fit_intercept": False}

    lean: bool = True

    def _rule(self) -> BinaryRule:
        """A new compiled rule of the method."""
        raise NotImplementedError(f"{type(self).__name__} must define _rule()")

    def _model(self) -> Model:
        rule = self._rule()
        return LeaningModel(rule) if self.lean and self.fit_intercept else rule
