"""Learners of river, in the pipelines that its documentation recommends: numbers scaled, categories one-hot."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from river import anomaly, base, compose, forest, linear_model, multiclass, naive_bayes, optim, preprocessing, tree

__all__ = [
    "LODA",
    "AdaptiveTree",
    "AdaptiveTreeRegressor",
    "Forest",
    "ForestRegressor",
    "HalfSpaceTrees",
    "Linear",
    "Logistic",
    "NaiveBayes",
    "OneClassSVM",
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
    """Scaled linear regression with the step of river's example of hourly counts; the default, .01, diverges here."""

    def __init__(self) -> None:
        self.model = _encoded() | linear_model.LinearRegression(optim.SGD(0.001))


class TreeRegressor(_Regressor):
    """Hoeffding tree regressor; the linear models in its leaves need numbers."""

    def __init__(self) -> None:
        self.model = _encoded() | tree.HoeffdingTreeRegressor()


class AdaptiveTreeRegressor(_Regressor):
    """Hoeffding adaptive tree regressor."""

    def __init__(self) -> None:
        self.model = _encoded() | tree.HoeffdingAdaptiveTreeRegressor(seed=1)


class ForestRegressor(_Regressor):
    """Adaptive random forest regressor of ten trees, the default."""

    def __init__(self) -> None:
        self.model = _encoded() | forest.ARFRegressor(seed=1)


class _Detector(base.AnomalyDetector):
    """Pass everything on to a pipeline, which gets the features that are present."""

    model: Any

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance."""
        self.model.learn_one(x)

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the anomaly score; where it is not a number, as before the first instances, 0."""
        score = float(self.model.score_one(x))
        return score if score == score else 0.0


class HalfSpaceTrees(_Detector):
    """Half-space trees over values scaled to [0, 1], which they expect."""

    def __init__(self) -> None:
        self.model = preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=1)


class LODA(_Detector):
    """LODA over standardised values."""

    def __init__(self) -> None:
        self.model = preprocessing.StandardScaler() | anomaly.LODA(seed=1)


class OneClassSVM(_Detector):
    """One-class support vector machine over standardised values."""

    def __init__(self) -> None:
        self.model = preprocessing.StandardScaler() | anomaly.OneClassSVM()
