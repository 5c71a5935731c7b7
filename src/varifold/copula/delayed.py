"""OVFM by its Algorithm 1: the copula is fitted to a buffer, and the oldest row of the buffer is predicted."""

from __future__ import annotations

import math
import numbers
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from river import base as river_base
from scipy.special import expit

from varifold._engine.names.vocabulary import plain_label
from varifold._numeric.hedge import Weights
from varifold.base import Block
from varifold.base.declared import declared
from varifold.base.params import AnyOf, Constraint, Integer, Real, validate_fields
from varifold.copula.buffer import BufferCopula
from varifold.errors import DataError, FeatureValueError, ParameterError

__all__ = ["DelayedOVFM"]

Floats = NDArray[np.float64]
LARGEST = 1e150
"""Larger magnitudes are clamped to it, as in the engine."""


@declared
class DelayedOVFM(river_base.Classifier):
    """Predict with the delay of OVFM's Algorithm 1, for comparison with the paper: numbers only.

    In each round a row joins the buffer, EM fits the copula to the whole buffer until it converges, and the oldest row
    of the buffer is predicted, learned and removed. A prediction depends on the features of later rows, up to the size
    of the buffer, so it is not an online prediction. Use `OVFM` in practice.

    Parameters
    ----------
    buffer
        Number of rows |B| in the buffer; with 1, no prediction looks ahead.
    tolerance, iterations
        EM stops if the correlation changes by at most `tolerance` in Frobenius norm (ε of Algorithm 1), or after this
        many iterations.
    c, gamma_min
        Weight of the buffer's moments in the M-steps of round k: max(gamma_min, c / (k + c)), the decaying step of
        eq. 9. With c = 0 it is `gamma_min` in every round.
    levels, sweeps
        As in `OVFM`; the distinct values of a column count over the whole stream.
    horizon
        Rows T of the stream, for the paper's rate √(8 ln 2 / T) of the mix; None: √(8 ln 2 / t).
    radius
        Radius of the ℓ1 ball of eq. 12; None disables the projection.
    keep
        Share of the known features whose weights are kept after the projection, as in `OVFM`; None keeps all.

    Notes
    -----
    The classifiers use gradient descent on the logistic loss with step 1/√t, as in the text, without intercept or
    scaling. With more than two labels there is one pair of classifiers and one mix a label, one versus rest.
    `run_block`, and so `varifold run` and `varifold bench` (as ``varifold.copula.delayed:DelayedOVFM``), predicts with
    the delay, and the last rows of a block with less look-ahead; `predict_one` predicts at once. A fit costs O(|B| d³)
    per iteration, in NumPy.

    References
    ----------
    Y. He, J. Dong, B.-J. Hou, Y. Wang, F. Wang. Online learning in variable feature spaces with mixed data. ICDM 2021.

    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "buffer": Integer(1, 100_000),
        "tolerance": Real(0),
        "iterations": Integer(1, 10_000),
        "c": Real(0),
        "gamma_min": Real(0, 1),
        "levels": Integer(1),
        "sweeps": Integer(1, 1000),
        "horizon": AnyOf(Integer(1), None),
        "radius": AnyOf(Real(0, open_low=True), None),
        "keep": AnyOf(Real(0, 1, open_low=True), None),
    }

    buffer: int = 50
    tolerance: float = 0.01
    iterations: int = 20
    c: float = 5.0
    gamma_min: float = 0.05
    levels: int = 14
    sweeps: int = 2
    horizon: int | None = None
    radius: float | None = None
    keep: float | None = None

    def __post_init__(self) -> None:
        validate_fields(self, self._constraints)
        if self.c == self.gamma_min == 0:
            raise ParameterError("DelayedOVFM needs c > 0 or gamma_min > 0; with both 0 the correlation never moves")
        self.classes: list[Any] = []
        self._copula = BufferCopula(self.levels, self.sweeps, self.tolerance, self.iterations, self.c, self.gamma_min)
        self._waiting: deque[tuple[dict[Any, float], Any]] = deque()
        self._weights: Floats = np.zeros((0, 2, 0))  # label x (raw, latent) x feature
        self._mixes: list[Weights] = []
        self._rounds = 0

    # ------------------------------------------------------------------ one row

    def _numbers(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the present values as floats; reject anything but finite numbers."""
        if not isinstance(x, Mapping):
            raise DataError(f"the instance is of type {type(x).__name__}; pass a mapping of feature names to numbers")
        values: dict[Any, float] = {}
        for name, value in x.items():
            if isinstance(value, str):
                raise DataError(f"the column {name!r} holds strings; DelayedOVFM accepts numbers only, so encode them")
            if value is None:
                continue
            if not isinstance(value, numbers.Real | np.bool_):
                raise FeatureValueError(
                    f"feature {name!r} is {value!r} of type {type(value).__name__}; pass a number, or None for "
                    '"not observed"'
                )
            number = float(value)
            if math.isinf(number):
                raise FeatureValueError(f'feature {name!r} is {number}; drop the key or pass None for "not observed"')
            if not math.isnan(number):
                values[name] = max(-LARGEST, min(LARGEST, number))
        return values

    def _label(self, y: Any) -> Any:
        """Return the label as a plain object."""
        return plain_label(y)

    def _join(self, x: dict[Any, float]) -> None:
        """Add the row's new columns."""
        self._copula.admit(x)
        self._weights = np.pad(self._weights, ((0, 0), (0, 0), (0, len(self._copula.index) - self._weights.shape[2])))

    def _add_label(self, y: Any) -> None:
        """Start the classifiers of a label: the second one's are the first one's, negated; others start at 0."""
        start = -self._weights[:1] if len(self.classes) == 1 else np.zeros((1, 2, self._weights.shape[2]))
        self._weights = np.concatenate([self._weights, start])
        mix = Weights(2, "horizon" if self.horizon else "anytime", float(self.horizon or 0))
        if len(self.classes) == 1:
            mix.fill(self._mixes[0].dump())
        self._mixes.append(mix)
        self.classes.append(y)

    def _views(self, x: dict[Any, float]) -> Floats:
        """Return the row with zeros for absent values, and its scores with absent ones regressed."""
        values = np.zeros(self._weights.shape[2])
        for name, value in x.items():
            if name in self._copula.index:
                values[self._copula.index[name]] = value
        return np.stack([values, self._copula.expect(self._copula.place(x))[0]])

    def _scores(self, x: dict[Any, float]) -> Floats:
        """Compute the mix of eq. 10 of every label."""
        own = (self._weights * self._views(x)).sum(axis=2)
        scores: Floats = (own * np.array([mix.weights() for mix in self._mixes])).sum(axis=1)
        return scores

    def _learn(self, x: dict[Any, float], y: Any) -> None:
        """Update risks, mix and classifiers (lines 12 to 15 of Algorithm 1)."""
        if y not in self.classes:
            self._add_label(y)
        self._rounds += 1
        views = self._views(x)
        for label, mix, weights in zip(self.classes, self._mixes, self._weights, strict=True):
            sign = 1.0 if label == y else -1.0
            margins = sign * (weights * views).sum(axis=1)
            weights += (sign / math.sqrt(self._rounds)) * expit(-margins)[:, None] * views
            for each in weights:
                self._sparsify(each)
            mix.learn(np.logaddexp(0.0, -margins))

    def _sparsify(self, weights: Floats) -> None:
        """Scale the weights into the ball of eq. 12, then set all but the largest to zero."""
        total = float(np.abs(weights).sum())
        if self.radius is not None and total > self.radius:
            weights *= self.radius / total
        if self.keep is not None:
            count = math.ceil(self.keep * len(weights) - 1e-9)
            weights[np.argsort(-np.abs(weights), kind="stable")[count:]] = 0.0

    def _probabilities(self, x: dict[Any, float]) -> dict[Any, float]:
        if len(self.classes) < 2:
            return dict.fromkeys(self.classes, 1.0)
        shares = expit(np.clip(self._scores(x), -700.0, 700.0))
        return dict(zip(self.classes, (shares / shares.sum()).tolist(), strict=True))

    # ------------------------------------------------------------------ API

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Add a row to the buffer; learn the oldest row of a full buffer."""
        self._enter(self._numbers(x), self._label(y))
        if len(self._waiting) >= self.buffer:
            self._learn(*self._waiting.popleft())

    def _enter(self, x: dict[Any, float], y: Any) -> None:
        """Add a row to the buffer and refit the copula."""
        self._join(x)
        self._waiting.append((x, y))
        self._copula.fit([row for row, _ in self._waiting])

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return probabilities without delay, from the current buffer."""
        return self._probabilities({n: v for n, v in self._numbers(x).items() if n in self._copula.index})

    def run_block(self, block: Block, schedule: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Run Algorithm 1 over a block; return label indices in `classes` (-1: none) and probabilities."""
        if schedule is not None:
            raise ParameterError("DelayedOVFM needs labels without delay; remove the delay")
        labels = block.labels.values
        predictions: list[dict[Any, float]] = []
        for x, code in zip(block.rows(), block.codes.tolist(), strict=True):
            self._enter(self._numbers(x), self._label(labels[code]))
            if len(self._waiting) >= self.buffer:
                predictions.append(self._predict_oldest())
        while self._waiting:
            predictions.append(self._predict_oldest())
        rows = [[share.get(y, 0.0) for y in self.classes] for share in predictions]
        shares = np.array(rows).reshape(len(rows), -1)
        labels_at = np.full(len(predictions), -1, dtype=np.int64)
        if shares.size:
            known = shares.sum(axis=1) > 0
            labels_at[known] = shares.argmax(axis=1)[known]
        return labels_at, shares

    def _predict_oldest(self) -> dict[Any, float]:
        x, y = self._waiting.popleft()
        prediction = self._probabilities(x)
        self._learn(x, y)
        return prediction
