"""Theorem 1 of OVFIV on random streams: the mixture's loss stays within its bound of the better of its two learners."""

import math

import numpy as np
import pytest

from varifold import FTRLADP, OVFIV, Variation


def random_stream(seed, n=600):
    """Values and absences that determine more or less of the label, by the seed."""
    rng = np.random.default_rng(seed)
    signal, absence = rng.uniform(0, 1.5), rng.uniform(0, 0.4)
    for _ in range(n):
        y = bool(rng.random() < 0.5)
        there = rng.random(6) < np.clip(0.6 + absence * (1 if y else -1) * np.array([1, 1, 0, 0, -1, 0]), 0.05, 0.95)
        yield {f"f{j}": float(rng.normal(signal * y * (j % 2))) for j in np.flatnonzero(there)}, y


def square_losses(learner, pairs):
    """(p - y)^2 of every prediction once both labels are known; in [0, 1], as the theorem requires."""
    total = 0.0
    for x, y in pairs:
        p = learner.predict_proba_one(x).get(True)
        if p is not None and len(learner.classes) == 2:
            total += (p - y) ** 2
        learner.learn_one(x, y)
    return total


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("eta", [0.05, 0.5, "optimal", "adaptive"])
def test_the_loss_is_within_the_bound(seed, eta):
    pairs = list(random_stream(seed))
    n = len(pairs)
    horizon = {"horizon": n} if eta == "optimal" else {}
    ensemble = square_losses(OVFIV(eta=eta, encode="absence", **horizon), pairs)
    values = square_losses(FTRLADP(majority_bias=False), pairs)
    variation = square_losses(Variation(encode="absence"), pairs)
    if eta == "optimal":
        bound = math.sqrt(n * math.log(2) / 2)
    elif eta == "adaptive":
        bound = 2 * math.sqrt(n / 2 * math.log(2)) + math.sqrt(math.log(2) / 8)
    else:
        bound = math.log(2) / eta + n * eta / 8
    assert ensemble <= min(values, variation) + bound
    assert ensemble < 0.3 * n, "a bound that anything would keep is empty"
