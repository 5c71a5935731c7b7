"""The final temperature, and the guard, which requires little at the start."""

import numpy as np
import pytest

from tests.base.kept_files import stream
from tests.engines import class_engine
from varifold import AutoClassifier
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import classifier_experts
from varifold.base import to_block


def calibration_error(probabilities, codes, truth):
    """Return the mean distance of confidence and accuracy in ten bins of confidence (ECE)."""
    confidence = probabilities.max(axis=1)
    bins = np.minimum((10 * confidence).astype(int), 9)
    right = codes == truth
    return sum(abs((confidence - right)[bins == b].sum()) for b in range(10)) / len(truth)


def overlapping(n, seed):
    """Two classes that overlap, half of the values absent."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    truth[:2] = 0, 1
    values = rng.normal(size=(n, 8)) + 0.9 * truth[:, None] * (np.arange(8) < 5)
    return np.where(rng.random((n, 8)) < 0.5, values, np.nan), truth


def test_the_final_temperature_calibrates_the_mixture():
    errors = {0.0: [], 0.1: []}
    for seed in range(3):
        values, truth = overlapping(2500, seed)
        for prior, values_by_seed in errors.items():
            model = ClassificationMixture(classifier_experts("fast"), final_variance=prior)
            codes, probabilities, _ = class_engine(model).run(to_block(values, truth), probabilities=True)
            values_by_seed.append(calibration_error(probabilities[50:, :2], codes[50:], truth[50:]))
    assert np.mean(errors[0.1]) < 0.8 * np.mean(errors[0.0])


def test_the_temperature_does_not_change_which_label_is_most_probable():
    values, truth = overlapping(600, 7)
    runs = [
        class_engine(ClassificationMixture(classifier_experts("fast"), guard=0.0, final_variance=prior)).run(
            to_block(values, truth), probabilities=True
        )
        for prior in (0.0, 0.1)
    ]
    assert (runs[0][0] == runs[1][0]).all()
    assert not np.allclose(runs[0][1], runs[1][1])


def test_the_guard_requires_less_during_the_first_rows():
    """Three of four labels equal and a clear signal: the rarer label is predicted sooner."""
    wrong = {0.0: 0, 50.0: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = (rng.random(50) < 0.3).astype(int)
        truth[:2] = 0, 1
        block = to_block(rng.normal(size=(50, 3)) + 2.0 * truth[:, None], truth)
        for full in wrong:
            codes, _, _ = class_engine(ClassificationMixture(classifier_experts("fast"), guard_full=full)).run(block)
            wrong[full] += int((codes != truth).sum())
    assert wrong[50.0] < 0.97 * wrong[0.0]


def test_files_keep_the_temperature():
    model = AutoClassifier("fast")
    for x, y in stream(120):
        model.learn_one(x, y)
    kept = model._engine.dump()[2]["model.final_temperature"]
    assert kept[0] != pytest.approx(1.0, abs=1e-3)
    again = AutoClassifier.from_bytes(model.to_bytes())
    assert (again._engine.dump()[2]["model.final_temperature"] == kept).all()
    for x, y in stream(160):
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
        again.learn_one(x, y)
        model.learn_one(x, y)
