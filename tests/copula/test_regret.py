"""Theorem 1 of OVFM on random streams: the ensemble's risk stays within sqrt(2 T ln 2) of its better part's."""

import math

import numpy as np
import pytest

from varifold import FTRLADP, OVFM


def random_stream(seed, n=500):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(6, 6))
    truth = rng.normal(size=6)
    for _ in range(n):
        z = mixing @ rng.normal(size=6) / 2
        y = bool(truth @ z + rng.normal(0, 0.5) > 0)
        x = np.concatenate([z[:3], z[3:5] > 0, np.digitize(z[5:], [-1, 0, 1])]).astype(float)
        yield {f"f{j}": float(x[j]) for j in np.flatnonzero(rng.random(6) < 0.7)}, y


def risk(learner, pairs):
    """Cross-entropy of every prediction once both labels are known."""
    total = 0.0
    for x, y in pairs:
        if len(learner.classes) == 2:
            total -= math.log(max(learner.predict_proba_one(x)[y], 1e-15))
        learner.learn_one(x, y)
    return total


@pytest.mark.parametrize("seed", range(10))
def test_the_risk_is_within_the_bound(seed):
    pairs = list(random_stream(seed))
    common = {"scale": "minmax", "fit_intercept": True}
    ensemble = risk(OVFM.as_in_paper(horizon=len(pairs), **common), pairs)
    latent = risk(OVFM.as_in_paper(latent_only=True, **common), pairs)
    observed = risk(FTRLADP(per_coordinate=True, majority_bias=False, **common), pairs)
    assert ensemble <= min(observed, latent) + math.sqrt(2 * len(pairs) * math.log(2))
    assert ensemble < 0.7 * len(pairs), "a bound that anything would keep is empty"
