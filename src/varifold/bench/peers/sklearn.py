"""Linear models of scikit-learn by stochastic gradient descent: absent values are means so far, categories one-hot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from varifold.bench.peers.columns import Floats, InAdvance, needs
from varifold.bench.peers.tails import Offline, filled

__all__ = ["SGD", "IsolationForest", "SGDRegressor"]


class _Encoded(InAdvance):
    """Columns of the stream, filled and scaled by what was seen so far."""

    def _encoded(self, row: Floats) -> Floats:
        first = self.arrays.first_code
        filled = self.filler.filled(row)
        parts = [self.filler.scaled(filled[:first])]
        for codes, code in zip(self.arrays.codes, filled[first:].tolist(), strict=True):
            indicators = np.zeros(len(codes))
            indicators[int(code)] = 1.0
            parts.append(indicators)
        return np.concatenate(parts)[None]

    def _seen(self, x: Mapping[Any, Any]) -> Floats:
        row = self.arrays.row(x)
        self.filler.learn(row)
        return self._encoded(row)


class SGD(_Encoded, base.Classifier):
    """Logistic regression by `SGDClassifier`."""

    _multiclass = True
    takes_strings = True

    def __init__(self, data: str) -> None:
        needs("sklearn", self)
        from sklearn.linear_model import SGDClassifier

        self.data = data
        self.model = SGDClassifier(loss="log_loss", random_state=1)
        self.learned = False

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one instance."""
        labels = self.arrays.schema.labels
        self.model.partial_fit(self._seen(x), [labels.index(y)], classes=np.arange(len(labels)))
        self.learned = True

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probabilities by label; none before the first instance."""
        if not self.learned:
            return {}
        probabilities = self.model.predict_proba(self._encoded(self.arrays.row(x)))[0]
        return dict(zip(self.arrays.schema.labels, probabilities.tolist(), strict=True))


class SGDRegressor(_Encoded, base.Regressor):
    """Linear regression by `SGDRegressor`."""

    takes_strings = True

    def __init__(self, data: str) -> None:
        needs("sklearn", self)
        from sklearn.linear_model import SGDRegressor as Model

        self.data = data
        self.model = Model(random_state=1)
        self.learned = False

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn one instance."""
        self.model.partial_fit(self._seen(x), [y])
        self.learned = True

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict the target; 0 before the first instance."""
        return float(self.model.predict(self._encoded(self.arrays.row(x)))[0]) if self.learned else 0.0


class IsolationForest(Offline):
    """Isolation forest fitted to all rows, means of the columns for absent values: an offline ceiling."""

    def __init__(self) -> None:
        needs("sklearn", self)

    def score_all(self, X: Floats) -> Floats:
        """Fit to all rows, then score them."""
        from sklearn.ensemble import IsolationForest as Model

        X = filled(X)
        scores: Floats = -Model(random_state=1).fit(X).score_samples(X)
        return scores
