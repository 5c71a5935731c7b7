"""Models of this family that are no registered learners keep their state when an allocation fails."""

from __future__ import annotations

from typing import Any

import pytest

from tests._engine import test_out_of_memory
from tests.engines import class_engine
from varifold.copula import CopulaImputer
from varifold.copula._gaussian import GaussianModel


class Gaussian:
    def __init__(self) -> None:
        self._engine = class_engine(GaussianModel(20))
        self.learn_one = self._engine.learn_one
        self.predict_one = self._engine.predict_one
        self.predict_proba_one = self._engine.predict_proba_one


class Imputer(CopulaImputer):
    def learn_one(self, x: Any, y: Any = None) -> None:
        super().learn_one(x)

    def predict_one(self, x: Any) -> Any:
        return self.impute_one(x)

    predict_proba_one = predict_one


@pytest.mark.parametrize("cls", [Gaussian, Imputer])
def test_a_failed_allocation_changes_nothing(cls: Any) -> None:
    test_out_of_memory.test_learn_one_leaves_the_learner_as_it_was(cls, {})
