"""Inverses that the copula keeps change nothing but the time it takes."""

import numpy as np

from varifold import OVFM


def test_a_learner_with_kept_inverses_answers_as_one_that_has_none():
    """Forty patterns of presence, more than are kept, come again and again; a loaded learner has kept no inverse."""
    rng = np.random.default_rng(0)
    patterns = rng.random((40, 12)) < 0.6
    model = OVFM(max_dense=64)
    assert model._engine.model.nbytes() > 24 * 12 * 12 * 8, "twenty-four inverses are kept"
    for step in range(200):
        values = rng.normal(size=12)
        x = {f"f{j}": float(values[j]) for j in np.flatnonzero(patterns[rng.integers(40)])}
        if step % 7 == 6:
            again = OVFM.from_bytes(model.to_bytes())
            assert again.margins_one(x) == model.margins_one(x)
        model.learn_one(x, bool(values[0] + values[1] > 0))
