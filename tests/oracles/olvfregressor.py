"""OLVF for regression from its definition: the weights of `PlainOLVF` under the epsilon-insensitive loss."""

from __future__ import annotations

import math
from typing import Any

from tests.oracles.olvf import PlainOLVF, sigmoid


class PlainOLVFRegressor(PlainOLVF):
    takes_order = True

    def __init__(self, C: float, C_bar: float, lam: float, B: float, variant: str, epsilon: float) -> None:
        super().__init__(C, C_bar, lam, B, variant)
        self.epsilon, self.radius = epsilon, lam

    def learn(  # type: ignore[override]
        self,
        x: dict[Any, float],
        y: float,
        w: float,
        fresh: set[Any],
        mean: float,
        deviation: float,
        order: dict[Any, int],
    ) -> None:
        away = y - mean
        left = away - self.score(x)
        s = 1.0 if abs(left) <= abs(away) else -1.0
        m = sum(self.w_bar.get(i, 0.0) for i in x)
        g = sigmoid(-s * m)
        tau_bar = self.C_bar * w
        if s * m < 36:
            tau_bar = min(tau_bar, math.log1p(math.exp(-s * m)) / (g**2 * len(x)))
        for i in x:
            self.w_bar[i] = self.w_bar.get(i, 0.0) + tau_bar * s * g
            self.w.setdefault(i, 0.0)
        p_x = max(sigmoid(sum(self.w_bar[i] for i in x)), 1e-6)
        p_w = max(sigmoid(sum(v for i, v in self.w_bar.items() if i not in fresh)), 1e-6)
        loss = abs(left) / deviation - self.epsilon if deviation > 0 else 0.0
        n_s = sum(v**2 for i, v in x.items() if i not in fresh)
        n_n = sum(v**2 for i, v in x.items() if i in fresh)
        if loss > 0 and n_s + n_n > 0:
            if self.variant == "kkt":
                tau = min(self.C * w, loss / (n_s / p_w + n_n / p_x))
                a, b = tau / p_w, tau / p_x
            else:
                tau = min(self.C * w, loss / (n_s + n_n))
                a, b = tau * p_w, tau * p_x
            for i, v in x.items():
                self.w[i] += (b if i in fresh else a) * math.copysign(deviation, left) * v
        if self.B < 1:
            self.lam = self.radius * deviation
            self.sparsify(order)

    def weight(self, name: Any) -> float:
        return abs(super().weight(name))
