"""Calibration of probabilities in plain Python, from the equations: a factor on the logits and one bias per label."""

from __future__ import annotations

import math
from typing import Any

from tests.oracles.additive import mix


class Calibration:
    """Learns factor and biases by an extended Kalman filter with independent variances."""

    def __init__(self) -> None:
        self.factor, self.variance = 1.0, 0.5
        self.bias: dict[Any, float] = {}
        self.bias_variance: dict[Any, float] = {}
        self.gain, self.count = 0.0, 0

    def logits(self, p: dict[Any, float]) -> dict[Any, float]:
        logs = {c: math.log(max(value, 1e-12)) for c, value in p.items()}
        mean = sum(logs.values()) / len(logs)
        return {c: value - mean for c, value in logs.items()}

    def calibrated(self, p: dict[Any, float]) -> dict[Any, float]:
        z = {c: self.factor * logit + self.bias.get(c, 0.0) for c, logit in self.logits(p).items()}
        top = max(z.values())
        z = {c: max(value, top - 18.0) for c, value in z.items()}  # never 0 or 1
        total = sum(math.exp(value - top) for value in z.values())
        return {c: math.exp(value - top) / total for c, value in z.items()}

    def probabilities(self, p: dict[Any, float], predicted: Any) -> dict[Any, float]:
        """Return the calibrated probabilities once they are better; none is above that of the predicted label."""
        if len(p) < 2 or self.gain <= 0.0 or self.count < 30:
            return p
        q = self.calibrated(p)
        above = [c for c in q if q[c] > q[predicted]]
        total = q[predicted] + sum(q[c] for c in above)
        share = (1 - 1e-6) * total / (len(above) + 1)
        return {**q, **dict.fromkeys(above, share), predicted: total - len(above) * share} if above else q

    def learn(self, p: dict[Any, float], y: Any, w: float, step: int) -> None:
        """Learn the instance at this step, counted from 0: all of the first 2,000, then those drawn."""
        if len(p) < 2 or y not in p or (self.count >= 2000 and mix(step) % 8):
            return
        w = min(w, 10.0)
        q, logits = self.calibrated(p), self.logits(p)
        self.gain = 0.998 * self.gain + w * (math.log(max(q[y], 1e-12)) - math.log(max(p[y], 1e-12)))
        self.count += 1
        mean = sum(q[c] * logits[c] for c in p)
        information = sum(q[c] * (logits[c] - mean) ** 2 for c in p)
        slope = sum((q[c] - (c == y)) * logits[c] for c in p)
        for c in p:
            v = min(self.bias_variance.get(c, 0.2) + 1e-5, 0.2)
            v = 1.0 / (1.0 / v + w * q[c] * (1.0 - q[c]))
            self.bias_variance[c] = v
            self.bias[c] = min(max(self.bias.get(c, 0.0) - v * w * (q[c] - (c == y)), -20.0), 20.0)
        v = min(self.variance + 1e-5, 0.5)
        self.variance = 1.0 / (1.0 / v + w * information)
        self.factor = min(max(self.factor - self.variance * w * slope, 0.05), 20.0)
