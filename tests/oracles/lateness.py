"""Weights of truths that come late, in NumPy."""

from __future__ import annotations

import numpy as np


def lateness_ratio(lates: list[tuple[float, np.ndarray]]) -> float:
    """Return by what the weight of the last of these truths is divided; each has its lag and the prediction's error.

    With L = 1 + the mean lag: the mean square of the mean error over about L truths, over what independent errors give.
    Means are over at most 1,000 truths. `v` is the variance of the mean error, if errors have variance 1.
    """
    lag, square, smooth_square, m, v, independent = 0.0, 0.0, 0.0, np.zeros_like(lates[0][1]), 0.0, 0.0
    for n, (late, error) in enumerate(lates, 1):
        rate = 1 / min(n, 1000)
        lag += rate * (late - lag)
        width = min(n, 1 + lag)
        m = m + (error - m) / width
        v = (1 - 1 / width) ** 2 * v + 1 / width**2
        independent += rate * (v - independent)
        square += rate * (error @ error - square)
        smooth_square += rate * (m @ m - smooth_square)
    return float(np.clip(smooth_square / (square * independent), 1, 1 + lates[-1][0]))
