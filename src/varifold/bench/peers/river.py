"""Learners of river, in the pipelines that its documentation recommends: numbers scaled, categories one-hot."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from river import base, compose, forest, linear_model, multiclass, naive_bayes, preprocessing, tree

__all__ = [
    "AdaptiveTree",
    "AdaptiveTreeRegressor",
    "Forest",
    "ForestRegressor",
    "Linear",
    "Logistic",
    "NaiveBayes",
    "Tree",
    "TreeRegressor",
]


class _Classifier(base.Classifier):
    """Pass everything on to a pipeline."""

    _multiclass = True
    takes_strings = True
    model: Any

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one instance."""
        self.model.learn_one(x, y)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probabilities by label."""
        probabilities: dict[Any, float] = self.model.predict_proba_one(x)
        return probabilities


class _Regressor(base.Regressor):
    """Pass everything on to a pipeline."""

    takes_strings = True
    model: Any

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn one instance."""
        self.model.learn_one(x, y)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict one instance."""
        return float(self.model.predict_one(x))


def _encoded() -> Any:
    """Scale numbers and encode categories one-hot."""
    scaled = compose.SelectType(numbers.Number) | preprocessing.StandardScaler()
    return scaled + (compose.SelectType(str) | preprocessing.OneHotEncoder())


class Logistic(_Classifier):
    """Scaled logistic regression, one problem per label."""

    def __init__(self) -> None:
        self.model = _encoded() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())


class NaiveBayes(_Classifier):
    """Gaussian naive Bayes of the numbers; it has no categories."""

    def __init__(self) -> None:
        self.model = compose.SelectType(numbers.Number) | naive_bayes.GaussianNB()  # type: ignore[no-untyped-call]


class Tree(_Classifier):
    """Hoeffding tree."""

    def __init__(self) -> None:
        self.model = tree.HoeffdingTreeClassifier()


class AdaptiveTree(_Classifier):
    """Hoeffding adaptive tree."""

    def __init__(self) -> None:
        self.model = tree.HoeffdingAdaptiveTreeClassifier(seed=1)


class Forest(_Classifier):
    """Adaptive random forest of ten trees, the default."""

    def __init__(self) -> None:
        self.model = forest.ARFClassifier(seed=1)


class Linear(_Regressor):
    """Scaled linear regression."""

    def __init__(self) -> None:
        self.model = _encoded() | linear_model.LinearRegression()


class TreeRegressor(_Regressor):
    """Hoeffding tree regressor."""

    def __init__(self) -> None:
        self.model = tree.HoeffdingTreeRegressor()


class AdaptiveTreeRegressor(_Regressor):
    """Hoeffding adaptive tree regressor."""

    def __init__(self) -> None:
        self.model = tree.HoeffdingAdaptiveTreeRegressor(seed=1)


class ForestRegressor(_Regressor):
    """Adaptive random forest regressor of ten trees, the default."""

    def __init__(self) -> None:
        self.model = forest.ARFRegressor(seed=1)
