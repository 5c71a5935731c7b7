"""CopulaRegressor from its equations: `PlainCopula` with the target as a column, and the mean over its window."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from tests.oracles.copula import PlainCopula
from tests.oracles.robust import splitmix64

TARGET = "the target"


class PlainTargetCopula(PlainCopula):
    """Copula whose U rows without a target weigh at most as much as the L rows with one."""

    with_target = without = 0

    def learn_rest(self, x: dict[str, float], w: float, step: int) -> None:
        """Learn a row without a target; its values enter the windows with probability L / U, by a hash of the step."""
        if TARGET not in self.marginals or not x:
            for column in {name.split("=")[0] for name in x if "=" in str(name)}:
                self.seen[column] = self.seen.get(column, 0) + 1
            return
        self.without += 1
        self.observed[TARGET].append(self.t + 1)
        self.learn(x, w, commit=splitmix64(step) / 2**64 < self.with_target / self.without)

    def step_sizes(self) -> list[float]:
        """Return the step of a row with a target by the count of those before the batch, that of others times L / U."""
        inside = sum(TARGET in row for _, row in self.batch)
        gamma = max(self.gamma_min, self.c / ((self.with_target - inside) / self.b + self.c))
        share = min(1.0, self.with_target / self.without) if self.without else 1.0
        return [gamma if TARGET in row else gamma * share for _, row in self.batch]


class PlainCopulaRegressor:
    """Regressor whose instances map names (`column=level` for strings, in the order of their slots) to numbers."""

    def __init__(self, **settings: Any) -> None:
        self.copula = PlainTargetCopula(**settings)

    def learn(self, x: dict[str, float], y: float | None, w: float, step: int = 0) -> None:
        if y is None:
            self.copula.learn_rest(x, w, step)
        else:
            self.copula.with_target += 1
            self.copula.learn({TARGET: y, **x}, w)

    def score(self, x: dict[str, float]) -> tuple[float, float]:
        """Return the conditional mean and deviation of the target's score."""
        z, C, _ = self.copula.e_step(x)
        j = self.copula.names.index(TARGET)
        return float(z[j]), float(np.sqrt(max(C[j, j], 1e-9)))

    def chances(self, z: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the target's window and their probabilities under a score of N(z, sd^2)."""
        marginal = self.copula.marginals[TARGET]
        values = np.sort(marginal.values)
        n = len(values)
        half = 0.0 if len(set(values.tolist())) <= marginal.levels else 0.5
        ends = (ndtri((np.arange(1, n) + half) / (n + 1)) - z) / sd
        chances = np.diff(np.concatenate([[0.0], ndtr(ends), [1.0]]))
        together = 1 + n // 128 if half else 1
        groups = np.split(chances, range(together, n, together))
        return values, np.concatenate([np.full(len(group), group.mean()) for group in groups])

    def distribution(self, x: dict[str, float]) -> tuple[float, float]:
        """Return the mean and deviation of the target."""
        values, chances = self.chances(*self.score(x))
        mean = chances @ values
        return float(mean), float(np.sqrt(chances @ (values - mean) ** 2))

    def parts(self, x: dict[str, float]) -> dict[str, float]:
        """Return each column's contribution, by the terms of the conditional mean; the rest has the key ''."""
        copula = self.copula
        z, sd = self.score(x)
        scores, _, given = copula.e_step(x)
        names = [name for name in copula.names if name in given]
        there = [copula.names.index(name) for name in names]
        P = np.linalg.inv(copula.sigma[np.ix_(there, there)] + 1e-6 * np.eye(len(there)))
        terms = (P @ copula.sigma[there, copula.names.index(TARGET)]) * scores[there]
        mean = self.distribution(x)[0]
        values, chances = self.chances(0.0, sd)
        found: dict[str, float] = {"": 0.0}
        for name, term in zip(names, terms.tolist(), strict=True):
            column = name.split("=")[0]
            found[column] = found.get(column, 0.0) + term * (mean - chances @ values) / z
        found[""] = mean - sum(found.values())
        return found
