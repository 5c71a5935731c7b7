"""OLVF directly from its equations: two dicts of weights, summed over all of them every time."""

from __future__ import annotations

import math
from typing import Any

from tests.oracles.harness import ONE


def sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v)) if v > -700 else 0.0


class PlainOLVF:
    def __init__(self, C: float, C_bar: float, lam: float, B: float, variant: str) -> None:
        self.C, self.C_bar, self.lam, self.B, self.variant = C, C_bar, lam, B, variant
        self.w: dict[Any, float] = {}
        self.w_bar: dict[Any, float] = {}
        self.gap = math.inf  # relative gap of the last truncation: smallest weight kept, largest removed

    def score(self, x: dict[Any, float]) -> float:
        return sum(self.w.get(i, 0.0) * v for i, v in x.items())

    def learn(self, x: dict[Any, float], y: float, w: float, fresh: set[Any], order: dict[Any, int]) -> None:
        f = self.score(x)
        s = 1.0 if (1.0 if f > 0 else -1.0) == y else -1.0
        m = sum(self.w_bar.get(i, 0.0) for i in x)
        g = sigmoid(-s * m)
        tau_bar = self.C_bar * w
        if s * m < 36:
            tau_bar = min(tau_bar, math.log1p(math.exp(-s * m)) / (g**2 * len(x)))
        for i in x:
            self.w_bar[i] = self.w_bar.get(i, 0.0) + tau_bar * s * g

        p_x = max(sigmoid(sum(self.w_bar[i] for i in x)), 1e-6)
        p_w = max(sigmoid(sum(v for i, v in self.w_bar.items() if i not in fresh)), 1e-6)
        loss = max(0.0, 1 - y * f)
        n_s = sum(v**2 for i, v in x.items() if i not in fresh)
        n_n = sum(v**2 for i, v in x.items() if i in fresh)
        for i in x:
            self.w.setdefault(i, 0.0)
        if loss > 0 and n_s + n_n > 0:
            if self.variant == "kkt":
                tau = min(self.C * w, loss / (n_s / p_w + n_n / p_x))
                a, b = tau / p_w, tau / p_x
            else:
                tau = min(self.C * w, loss / (n_s + n_n))
                a, b = tau * p_w, tau * p_x
            for i, v in x.items():
                self.w[i] += (b if i in fresh else a) * y * v
        if self.B < 1:
            self.sparsify(order)

    def sparsify(self, order: dict[Any, int]) -> None:
        q = sum(abs(w) * abs(self.w_bar[i]) for i, w in self.w.items())
        if q > self.lam:
            self.w = {i: w * self.lam / q for i, w in self.w.items()}
        keep = max(1, math.floor(self.B * len(order)))
        # the intercept is never removed; among equals those with a space weight stay, then the lower slot
        ranked = sorted((i for i in self.w if i != ONE), key=lambda i: (-abs(self.w[i]), self.w_bar[i] == 0, order[i]))
        self.gap = math.inf
        if len(ranked) > keep and self.w[ranked[keep - 1]] != 0.0:
            self.gap = 1 - abs(self.w[ranked[keep]]) / abs(self.w[ranked[keep - 1]])
        for i in ranked[keep:]:
            self.w[i] = self.w_bar[i] = 0.0

    def forget(self, name: Any) -> None:
        self.w.pop(name, None)
        self.w_bar.pop(name, None)

    def negate(self) -> None:
        self.w = {i: -w for i, w in self.w.items()}

    def weight(self, name: Any) -> float:
        return self.w.get(name, 0.0)
