"""Naive Bayes on presence: the logarithms it keeps are those of the counts as they are."""

from __future__ import annotations

import pickle
import random

import pytest

import varifold


@pytest.mark.parametrize("bound", [None, 7])
def test_kept_logarithms_follow_the_counts(bound: int | None) -> None:
    """A copy from a pickle has kept none: it predicts by the counts alone."""
    rng = random.Random(3)
    model = varifold.AutoClassifier("fast", max_features=bound)
    for step in range(400):
        names = [f"f{j}" for j in range(step // 40, step // 40 + 8) if rng.random() < 0.6]
        x = {name: rng.gauss(0.0, 1.0) for name in names}
        if step % 10 == 9:
            asked = {f"f{j}": 0.5 for j in range(step // 40, step // 40 + 8) if rng.random() < 0.5}
            model.predict_proba_one(asked)
            assert model.predict_proba_one(asked) == pickle.loads(pickle.dumps(model)).predict_proba_one(asked)
        model.learn_one(x, rng.choice("ab" if step < 60 else "abcde"), w=rng.choice([0.5, 1.0]))
        model.predict_proba_one(x)
