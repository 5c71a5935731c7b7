"""AutoRegressor: the regressor to start with."""
from __future__ import annotations
from typing import Any, ClassVar
from varifold.auto._regression import AutoRegression
from varifold.base.params import Constraint, OneOf
from varifold.base.regressor import VaryingRegressor
from varifold.linear._arow import AROWRule
from varifold.linear._arowregressor import AROWRegression
from varifold.linear._tracking import TrackingRegression
from varifold.neighbours._neighboursregressor import NeighboursRegression
from varifold._engine.regression_model import RegressionModel

class AutoRegressor(VaryingRegressor):
    """proto"""
    _parameters: ClassVar[dict[str, Constraint]] = {"loss": OneOf("squared", "absolute")}
    def __init__(self, loss="squared", *, scale="standard", clip=3.0, max_features=None, evict="oldest", _opt=None):
        self.loss = loss
        self._opt = _opt or {}
        super().__init__(scale=scale, fit_intercept=True, clip=clip, max_features=max_features, evict=evict)
    def _model(self):
        ex=[("linear", AROWRegression(AROWRule(1.0)), False),("linear, full", AROWRegression(AROWRule(1.0,128)), False),("presence", AROWRegression(AROWRule(1.0)), True),("mean", RegressionModel(), False),("tracking", TrackingRegression(0.2,0.2), False),("tracking, slow", TrackingRegression(0.03,0.1), False),("neighbours", NeighboursRegression(5,500), False)]
        return AutoRegression(ex, self.loss=="absolute", **self._opt)
