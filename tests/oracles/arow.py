"""AROW straight from its equations: a covariance matrix over all names, rebuilt as names come and go."""

from __future__ import annotations

from typing import Any

import numpy as np


class PlainAROW:
    def __init__(self, r: float, covariance: str, max_dense: int = 512) -> None:
        self.r, self.full, self.max_dense = r, covariance == "full", max_dense
        self.names: list[Any] = []
        self.mu = np.zeros(0)
        self.sigma = np.eye(0)

    def vector(self, x: dict[Any, float]) -> np.ndarray:
        return np.array([x.get(name, 0.0) for name in self.names])

    def score(self, x: dict[Any, float]) -> float:
        return float(self.mu @ self.vector(x)) if self.names else 0.0

    def admit(self, x: dict[Any, float], order: dict[Any, int]) -> None:
        for name in x:
            if name not in self.names:
                self.names.append(name)
                self.mu = np.append(self.mu, 0.0)
                wider = np.eye(len(self.names))
                wider[:-1, :-1] = self.sigma
                self.sigma = wider
        if self.full and any(order.get(name, 0) > self.max_dense for name in x):
            self.full = False
            self.sigma = np.diag(np.diag(self.sigma))

    def learn(self, x: dict[Any, float], y: float, w: float, fresh: set[Any], order: dict[Any, int]) -> None:
        self.admit(x, order)
        v = self.vector(x)
        loss = max(0.0, 1 - y * float(self.mu @ v))
        if loss == 0.0:
            return
        u = self.sigma @ v
        beta = 1 / (v @ u + self.r / w)
        self.mu = self.mu + beta * loss * y * u
        if self.full:
            self.sigma = self.sigma - beta * np.outer(u, u)
        else:
            self.sigma = np.diag(1 / (1 / np.diag(self.sigma) + v**2 / (self.r / w)))

    def forget(self, name: Any) -> None:
        if name in self.names:
            keep = [i for i, n in enumerate(self.names) if n != name]
            self.names = [self.names[i] for i in keep]
            self.mu = self.mu[keep]
            self.sigma = self.sigma[np.ix_(keep, keep)]

    def negate(self) -> None:
        self.mu = -self.mu

    def weight(self, name: Any) -> float:
        return float(self.mu[self.names.index(name)]) if name in self.names else 0.0
