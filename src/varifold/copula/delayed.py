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

from varifold._engine.names.vocabulary import plain_label
from varifold._numeric.hedge import Weights
from varifold.base import Block
from varifold.base.params import AnyOf, Constraint, Integer, Real, validate
from varifold.copula.buffer import BufferCopula
from varifold.errors import DataError, FeatureValueError, ParameterError

__all__ = ["DelayedOVFM"]

Floats = NDArray[np.float64]
LARGEST = 1e150
"""Larger magnitudes are clamped to it, as in the engine."""


class DelayedOVFM(river_base.Classifier):
    """Predict with the delay of OVFM's Algorithm 1, for comparison with the paper: two labels, numbers only.

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
    gamma
        Weight of the buffer's moments in an M-step (eq. 9), in (0, 1].
    levels, sweeps
        As in `OVFM`; the distinct values of a column count over the whole stream.
    horizon
        Rows T of the stream, for the paper's rate √(8 ln 2 / T) of the mix; None: √(8 ln 2 / t).
    radius
        Radius of the ℓ1 ball of eq. 12; None disables the projection.

    Notes
    -----
    The classifiers use gradient descent on the logistic loss with step 1/√t, as in the text, without intercept or
    scaling. `run_block`, and so `varifold run` and `varifold bench` (as ``varifold.copula.delayed:DelayedOVFM``),
    predicts with the delay, and the last rows of a block with less look-ahead; `predict_one` predicts at once. A fit
    costs O(|B| d³) per iteration, in NumPy.

    References
    ----------
    Y. He, J. Dong, B.-J. Hou, Y. Wang, F. Wang. Online learning in variable feature spaces with mixed data. ICDM 2021.

    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "buffer": Integer(1, 100_000),
        "tolerance": Real(0),
        "iterations": Integer(1, 10_000),
        "gamma": Real(0, 1, open_low=True),
        "levels": Integer(1),
        "sweeps": Integer(1, 1000),
        "horizon": AnyOf(Integer(1), None),
        "radius": AnyOf(Real(0, open_low=True), None),
    }

    def __init__(
        self,
        buffer: int = 50,
        tolerance: float = 0.01,
        iterations: int = 20,
        gamma: float = 0.5,
        levels: int = 14,
        sweeps: int = 2,
        horizon: int | None = None,
        radius: float | None = None,
    ) -> None:
        self.buffer = buffer
        self.tolerance = tolerance
        self.iterations = iterations
        self.gamma = gamma
        self.levels = levels
        self.sweeps = sweeps
        self.horizon = horizon
        self.radius = radius
        validate(type(self).__name__, self._constraints, self.__dict__)
        self.classes: list[Any] = []
        self._copula = BufferCopula(levels, sweeps, tolerance, iterations, gamma)
        self._waiting: deque[tuple[dict[Any, float], Any]] = deque()
        self._raw: Floats = np.zeros(0)
        self._latent: Floats = np.zeros(0)
        self._mix = Weights(2, "horizon" if horizon else "anytime", float(horizon or 0))
        self._rounds = 0

    @property
    def _multiclass(self) -> bool:
        return False

    # ------------------------------------------------------------------ one row

    def _numbers(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the present values as floats; reject anything but finite numbers."""
        if not isinstance(x, Mapping):
            raise DataError(f"the instance is of type {type(x).__name__}; pass a mapping of feature names to numbers")
        found: dict[Any, float] = {}
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
                found[name] = max(-LARGEST, min(LARGEST, number))
        return found

    def _label(self, y: Any) -> Any:
        """Return the label as a plain object; reject a third label."""
        y = plain_label(y)
        known = dict.fromkeys([*self.classes, *(label for _, label in self._waiting)])
        if y not in known and len(known) == 2:
            raise DataError(f"DelayedOVFM supports two labels; {y!r} is a third one after {list(known)}")
        return y

    def _join(self, x: dict[Any, float]) -> None:
        """Add the row's new columns."""
        self._copula.admit(x)
        room = len(self._copula.index) - len(self._raw)
        self._raw, self._latent = np.pad(self._raw, (0, room)), np.pad(self._latent, (0, room))

    def _views(self, x: dict[Any, float]) -> tuple[Floats, Floats]:
        """Return the row with zeros for absent values, and its scores with absent ones regressed."""
        values = np.zeros(len(self._raw))
        for name, value in x.items():
            if name in self._copula.index:
                values[self._copula.index[name]] = value
        return values, self._copula.expect(self._copula.place(x))[0]

    def _score(self, x: dict[Any, float]) -> float:
        """Compute the mix of eq. 10."""
        values, latent = self._views(x)
        share = self._mix.weights()
        return float(share[0] * (self._raw @ values) + share[1] * (self._latent @ latent))

    def _learn(self, x: dict[Any, float], y: Any) -> None:
        """Update risks, mix and classifiers (lines 12 to 15 of Algorithm 1)."""
        if y not in self.classes:
            self.classes.append(y)
        sign = 1.0 if self.classes.index(y) else -1.0
        self._rounds += 1
        margins = []
        for weights, view in zip((self._raw, self._latent), self._views(x), strict=True):
            margins.append(sign * float(weights @ view))
            weights += sign * view / math.sqrt(self._rounds) / (1.0 + math.exp(min(margins[-1], 700.0)))
            total = float(np.abs(weights).sum())
            if self.radius is not None and total > self.radius:
                weights *= self.radius / total
        self._mix.learn(np.logaddexp(0.0, -np.array(margins)))

    def _probabilities(self, x: dict[Any, float]) -> dict[Any, float]:
        if len(self.classes) < 2:
            return dict.fromkeys(self.classes, 1.0)
        p = 1.0 / (1.0 + math.exp(-min(max(self._score(x), -700.0), 700.0)))
        return dict(zip(self.classes, (1.0 - p, p), strict=True))

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
        labels = list(block.labels.values)
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
