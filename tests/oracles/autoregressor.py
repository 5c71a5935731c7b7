"""AutoRegressor in plain NumPy: its experts as separate learners, stacked and mixed by the equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.oracles.lateness import lateness_ratio
from varifold import (
    AdditiveRegressor,
    AROWRegressor,
    CopulaRegressor,
    MeanRegressor,
    NeighboursRegressor,
    WindowForestRegressor,
)

DRIFTS = (1e-5, 1e-2)
PRESENCE = 6


class PlainTracking:
    """level += a e, w += b e x / (1 + x.x), on values scaled by a twin learner."""

    def __init__(self, level_rate: float, rate: float) -> None:
        self.level_rate, self.rate = level_rate, rate
        self.level: float | None = None
        self.weights: dict[Any, float] = {}

    def predict(self, x: dict[Any, float]) -> float:
        return (self.level or 0.0) + sum(self.weights.get(name, 0.0) * v for name, v in x.items())

    def learn(self, x: dict[Any, float], y: float, w: float) -> None:
        if self.level is None:
            self.level = y
            return
        error = min(w, 1.0) * (y - self.predict(x))
        norm = 1.0 + sum(v * v for v in x.values())
        self.level += self.level_rate * error
        for name, v in x.items():
            self.weights[name] = self.weights.get(name, 0.0) + self.rate * error * v / norm


class PlainGradient:
    """w += 2 e x / sqrt(t), at most to where the error vanishes, on scaled values and a constant 1."""

    def __init__(self) -> None:
        self.weights: dict[Any, float] = {}
        self.t = 0

    def score(self, x: dict[Any, float]) -> float:
        return self.weights.get(None, 0.0) + sum(self.weights.get(name, 0.0) * v for name, v in x.items())

    def learn(self, x: dict[Any, float], error: float, w: float) -> None:
        self.t += 1
        inputs = {None: 1.0, **x}
        step = min(2.0 * w / math.sqrt(self.t), 1.0 / sum(v * v for v in inputs.values()))
        for name, v in inputs.items():
            self.weights[name] = self.weights.get(name, 0.0) + step * error * v


def moved(targets: list[float], *more: float) -> list[float]:
    """Return `targets` and `more`, with outliers moved to four times the third quartile of the distances."""
    together = [*targets, *more]
    if len(targets) < 8:
        return together
    centre = sorted(targets)[len(targets) // 2]
    unit = sorted(abs(y - centre) for y in targets)[3 * len(targets) // 4 - 1]
    if unit == 0.0 or 8 * sum(abs(y - centre) > 20.0 * unit for y in targets) > len(targets):
        return together
    return [y if abs(y - centre) <= 20.0 * unit else centre + math.copysign(4.0 * unit, y - centre) for y in together]


class PlainAutoRegressor:
    """AutoRegressor for numeric features that are scaled by `scaled(x, w, commit)`."""

    def __init__(self, loss: str, scaler: Any) -> None:
        self.loss = loss
        self.absolute = loss == "absolute"
        self.first: list[tuple[dict[str, float], float, float]] | None = []
        self.learned: list[float] = []
        self.offset, self.before, self.run = 0.0, math.nan, list[float]()
        self.scaler = scaler
        self.learners = [
            AROWRegressor(),
            AROWRegressor(covariance="full", max_dense=128),
            AdditiveRegressor(r=10.0),
            PlainTracking(0.2, 0.2),
            PlainTracking(0.03, 0.1),
            PlainGradient(),
            AROWRegressor(scale="none"),
            NeighboursRegressor(),
            WindowForestRegressor(min_leaf=1, cuts=8),
            CopulaRegressor(window=500, max_dense=64),
            MeanRegressor(),
        ]
        self.k = len(self.learners)
        self.log_weights = np.array([-np.log(2.0)] * self.k + [0.0, 0.0])
        self.stacks = [np.array([0.1] * self.k + [0.0]) for _ in DRIFTS]
        self.covs = [np.eye(self.k + 1) for _ in DRIFTS]
        self.targets: list[tuple[float, float]] = []
        self.rounds, self.typical, self.squares = 0, 0.0, [0.0 for _ in DRIFTS]
        self.lates: list[tuple[float, np.ndarray]] = []

    def statistics(self) -> tuple[float, float]:
        if not self.targets:
            return 0.0, 0.0
        y, w = np.array(self.targets).T
        mean = np.average(y, weights=w)
        return float(mean), float(np.sqrt(np.average((y - mean) ** 2, weights=w)))

    def ask(self, x: dict[str, float]) -> np.ndarray:
        """Return the predictions of the experts and, last, the stacks, in deviations from the mean."""
        return self.stacked(self.predicted(x))

    def predicted(self, x: dict[str, float]) -> np.ndarray:
        """Return the predictions of the experts in the target's units."""
        mean, _ = self.statistics()
        scaled = self.scaler.scaled(x, 1.0, False)
        predicted = []
        for place, learner in enumerate(self.learners):
            if isinstance(learner, PlainTracking):
                predicted.append(learner.predict(scaled))
            elif isinstance(learner, PlainGradient):
                predicted.append(mean + learner.score(scaled))
            else:
                predicted.append(learner.predict_one(dict.fromkeys(x, 1.0) if place == PRESENCE else x))
        return np.array(predicted)

    def stacked(self, predicted: np.ndarray) -> np.ndarray:
        """Return predictions in deviations from the mean, and those of the stacks."""
        mean, deviation = self.statistics()
        z = (predicted - mean) / deviation
        stacked = [stack[:-1] @ z + stack[-1] for stack in self.stacks]
        return np.append(z, np.clip(stacked, z.min() - self.typical, z.max() + self.typical))

    def portions(self) -> np.ndarray:
        weights = np.exp(self.log_weights)
        return weights / weights.sum()

    def predict(self, x: dict[str, float]) -> float:
        mean, deviation = self.statistics()
        if deviation == 0.0:
            return mean
        return float(self.offset + mean + deviation * self.portions() @ self.ask(x))

    def warm_up(self, x: dict[str, float], y: float, w: float) -> float:
        """Keep the first 32 instances, learn them again without outliers, and return the target to learn."""
        assert self.first is not None
        if len(self.first) in (8, 16, 32):
            targets = moved([t for _, t, _ in self.first])
            if targets != self.learned:
                again = PlainAutoRegressor(self.loss, type(self.scaler)(self.scaler.kind))
                again.first = None
                for (xs, _, ws), target in zip(self.first, targets, strict=True):
                    again.learn(xs, target, ws)
                self.__dict__.update({**again.__dict__, "first": self.first, "learned": targets})
        if len(self.first) == 32:
            self.first = None
            return y
        target = moved([t for _, t, _ in self.first], y)[-1]
        self.first.append((x, y, w))
        self.learned.append(target)
        return target

    def without_outlier(self, y: float, prediction: float, deviation: float) -> float:
        """Return the target less the offset of the level, moved towards the prediction if it is an outlier."""
        most = 12.0 * self.typical * deviation
        if abs(y - self.offset - prediction) > most and abs(y - self.before - prediction) <= most:
            self.offset, self.before = self.before, self.offset
        error = y - self.offset - prediction
        if self.rounds < 30 or abs(error) <= most:
            self.run = []
            return y - self.offset
        if self.run and self.run[-1] * error < 0.0:
            self.run = []
        self.run.append(error)
        sizes = np.abs(self.run[-6:])
        if len(sizes) == 6 and sizes.max() <= 2.0 * sizes.min():
            self.before, self.offset = self.offset, self.offset + float(np.mean(self.run[-3:]))
            self.run = []
            return y - self.offset
        if len(self.run) > 5:
            most = max(most, 12.0 * deviation) if len(self.run) <= 30 else math.inf
        return prediction + float(np.clip(error, -most, most))

    def issue(self, x: dict[str, float]) -> tuple[np.ndarray | None, int]:
        """Return what the experts predict now, None if they cannot, and how many targets were learned."""
        return (self.predicted(x) if self.statistics()[1] > 0.0 else None, self.rounds)

    def learn(
        self, x: dict[str, float], y: float, w: float, issued: tuple[np.ndarray | None, int] | None = None
    ) -> None:
        """Learn a target; `issued` is what issue() returned when the instance was predicted."""
        if self.first is not None:
            y = self.warm_up(x, y, w)
        mean, deviation = self.statistics()
        known = {name: v for name, v in x.items() if name in self.scaler.past}
        if deviation > 0.0:
            predicted = None if issued is None else issued[0]
            z = self.ask(known) if predicted is None else self.stacked(predicted)
            y = self.without_outlier(y, float(mean + deviation * self.portions() @ z), deviation)
        if deviation > 0.0 and (issued is None or issued[0] is not None):
            lag = 0 if issued is None else self.rounds - issued[1]
            self.learn_combination(z, (y - mean) / deviation, w / self.late(z, (y - mean) / deviation, lag))
        self.targets.append((y, w))
        scaled = self.scaler.scaled(x, w, True)
        before = deviation
        mean, deviation = self.statistics()
        if before > 0.0 and deviation > 0.0 and self.rounds <= 30:
            self.typical = min(self.typical * before / deviation, 1e6)
            self.squares = [min(square * (before / deviation) ** 2, 1e6) for square in self.squares]
        for place, learner in enumerate(self.learners):
            if isinstance(learner, PlainTracking):
                learner.learn(scaled, y, w)
            elif isinstance(learner, PlainGradient):
                learner.learn(scaled, y - mean - learner.score(scaled) if deviation > 0.0 else 0.0, w)
            else:
                learner.learn_one(dict.fromkeys(x, 1.0) if place == PRESENCE else x, y, w)

    def late(self, z: np.ndarray, y: float, lag: int) -> float:
        """Return by what the weight of a target that comes `lag` targets late is divided."""
        if lag == 0:
            return 1.0
        error = (y - self.portions() @ z) / (4.0 * max(self.typical, 1e-9))
        self.lates.append((lag, np.clip([error], -1.0, 1.0)))
        return lateness_ratio(self.lates)

    def learn_combination(self, z: np.ndarray, y: float, w: float) -> None:
        rate = 1.0 / min(self.rounds + 1, 200)
        self.typical += rate * (abs(y - self.portions() @ z) - self.typical)
        self.rounds += 1
        losses = np.minimum(np.abs(y - z) / (4.0 * self.typical), 1.0)
        weights = np.exp(self.log_weights - 3.0 * min(w, 1.0) * (losses if self.absolute else losses**2))
        self.log_weights = np.log(0.003 / len(weights) * weights.sum() + 0.997 * weights)
        inputs = np.append(z[: self.k], 1.0)
        for i, (drift, stack, cov) in enumerate(zip(DRIFTS, self.stacks, self.covs, strict=True)):
            self.squares[i] += rate * (min((y - z[self.k + i]) ** 2, 1e6) - self.squares[i])
            error = np.clip(y - stack @ inputs, -3.0 * self.typical, 3.0 * self.typical)
            gain = cov @ inputs / (self.squares[i] / w + inputs @ cov @ inputs)
            self.stacks[i] = stack + gain * error
            cov = cov - np.outer(gain, inputs @ cov)
            self.covs[i] = cov + np.diag(np.minimum(drift, 1.0 - np.diag(cov)))
