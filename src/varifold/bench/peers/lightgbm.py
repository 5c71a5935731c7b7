"""LightGBM on a stream: fitted again from time to time, or continued by `init_model`; NaN where a value is absent."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from varifold.bench.peers.columns import Floats, Frequencies, InAdvance, needs

__all__ = ["RefitClassifier", "RefitRegressor"]

EVERY = 500
"""Rows between two fits, by default."""
ROUNDS, MORE = 100, 10
"""Trees (per label) of a fit, LightGBM's default, and those that each `init_model` adds."""


class _Boosted(InAdvance):
    """Rows so far, and the model of the last fit.

    Parameters
    ----------
    data
        Name of the data set, for its columns.
    last
        Fit on the last rows only; 0 for all rows so far.
    continued
        Add trees that are fitted to the new rows to the model, instead of fitting a new one.
    every
        Rows between two fits.

    """

    last: int
    continued: bool
    every: int

    def _start(self, data: str, last: int, continued: bool, every: int) -> None:
        self.data, self.last, self.continued, self.every = data, last, continued, every
        needs("lightgbm", self)
        importlib.import_module("lightgbm")  # before memory is measured
        self.rows: list[Floats] = []
        self.y: list[float] = []
        self.seen = 0
        self.fitted: Any = None

    def _objective(self) -> dict[str, Any]:
        raise NotImplementedError

    def _learn(self, x: Mapping[Any, Any], y: float) -> None:
        self.rows.append(self.arrays.row(x))
        self.y.append(y)
        self.seen += 1
        if self.seen % self.every == 0:
            self._fit()

    def _fit(self) -> None:
        import lightgbm

        kept = self.every if self.continued else self.last
        if kept:
            self.rows, self.y = self.rows[-kept:], self.y[-kept:]
        categories = list(range(self.arrays.first_code, len(self.arrays.names)))
        self.fitted = lightgbm.train(
            {**self._objective(), "verbose": -1, "num_threads": 1, "seed": 1},
            lightgbm.Dataset(np.array(self.rows), np.array(self.y), categorical_feature=categories),
            num_boost_round=MORE if self.continued else ROUNDS,
            init_model=self.fitted if self.continued else None,
        )

    def _predict(self, x: Mapping[Any, Any]) -> Any:
        return self.fitted.predict(self.arrays.row(x)[None], num_threads=1)[0]


class RefitClassifier(_Boosted, base.Classifier):
    """LightGBM classifier; before the first fit it predicts the shares of the labels."""

    _multiclass = True
    takes_strings = True

    def __init__(self, data: str, last: int = 0, continued: bool = False, every: int = EVERY) -> None:
        self._start(data, last, continued, every)
        self.frequencies = Frequencies()

    def _objective(self) -> dict[str, Any]:
        labels = len(self.arrays.schema.labels)
        return {"objective": "binary"} if labels == 2 else {"objective": "multiclass", "num_class": labels}

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Keep the instance; fit after every `every`."""
        self.frequencies.learn(y)
        self._learn(x, self.arrays.schema.labels.index(y))

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probabilities by label."""
        if self.fitted is None:
            return self.frequencies.shares()
        predicted = self._predict(x)
        labels = self.arrays.schema.labels
        values = [1.0 - float(predicted), float(predicted)] if len(labels) == 2 else predicted.tolist()
        return dict(zip(labels, values, strict=True))


class RefitRegressor(_Boosted, base.Regressor):
    """LightGBM regressor (squared error, its default); before the first fit it predicts the mean of the targets."""

    takes_strings = True

    def __init__(self, data: str, last: int = 0, continued: bool = False, every: int = EVERY) -> None:
        self._start(data, last, continued, every)

    def _objective(self) -> dict[str, Any]:
        return {"objective": "regression"}

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Keep the instance; fit after every `every`."""
        self._learn(x, y)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict the target."""
        if self.fitted is None:
            return sum(self.y) / len(self.y) if self.y else 0.0
        return float(self._predict(x))
