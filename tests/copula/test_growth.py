"""Growth between a prediction and the learning of the same instance changes no prediction."""

from __future__ import annotations

import random

import varifold


def test_inverses_kept_from_a_prediction_survive_growth() -> None:
    rng = random.Random(3)
    predicting, silent = varifold.AutoClassifier(), varifold.AutoClassifier()
    for step in range(60):
        y = rng.choice("ab")
        x = {f"f{i}": rng.gauss(len(y) + (y == "b"), 1.0) for i in range(4 + step) if rng.random() < 0.7}
        predicting.predict_one(x)
        predicting.learn_one(x, y, w=0.5)
        silent.learn_one(x, y, w=0.5)
        assert predicting.to_bytes() == silent.to_bytes(), step
