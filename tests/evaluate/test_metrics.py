"""Areas under curves: exact while every score is kept, close and bounded in memory after that."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from varifold.evaluate.metrics import LabelCounts, RankedScores, Tally


def scored(n, ties, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.3
    scores = 1 / (1 + np.exp(-rng.normal(np.where(truth, 1.0, -0.5))))
    return truth, np.round(scores, 1) if ties else scores


@pytest.mark.parametrize("ties", [False, True])
def test_areas_are_those_of_scikit_learn(ties):
    truth, scores = scored(3000, ties)
    ranked = RankedScores()
    for part in np.array_split(np.arange(3000), 7):
        ranked.add(scores[part], truth[part].astype(float), (~truth[part]).astype(float))
    auroc, auprc = ranked.areas()
    assert auroc == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
    assert auprc == pytest.approx(average_precision_score(truth, scores), abs=1e-12)


def test_memory_is_bounded_and_the_areas_stay_close():
    truth, scores = scored(100_000, ties=False)
    ranked = RankedScores()
    for part in np.array_split(np.arange(100_000), 25):
        ranked.add(scores[part], truth[part].astype(float), (~truth[part]).astype(float))
        ranked.shrink(4096)
        assert ranked.size <= 4096
    auroc, auprc = ranked.areas()
    assert auroc == pytest.approx(roc_auc_score(truth, scores), abs=1e-3)
    assert auprc == pytest.approx(average_precision_score(truth, scores), abs=1e-2)


def test_equal_scores_are_joined_without_loss():
    truth, scores = scored(20_000, ties=True)
    ranked = RankedScores()
    for part in np.array_split(np.arange(20_000), 10):
        ranked.add(scores[part], truth[part].astype(float), (~truth[part]).astype(float))
        ranked.shrink(4096)
    assert ranked.areas()[0] == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)


def test_many_labels_are_the_mean_of_each_against_the_rest():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, 500)
    scores = rng.random((500, 4)) + 0.5 * np.eye(4)[truth]
    scores /= scores.sum(axis=1, keepdims=True)
    tally = Tally()
    tally.add(truth, scores.argmax(axis=1), truth, 4)
    tally.rate(truth, scores.argmax(axis=1), scores)
    found = tally.scores(None)
    assert found["auroc"] == pytest.approx(roc_auc_score(truth, scores, multi_class="ovr"), abs=1e-12)
    assert found["auprc"] == pytest.approx(average_precision_score(np.eye(4)[truth], scores), abs=1e-12)


def test_means_over_labels_are_those_of_scikit_learn():
    """Label 1 is predicted but never true, label 2 neither; only the recall has no value without true instances."""
    truth, predicted = np.array([0, 0, 0, 3, 3]), np.array([0, 0, 1, 3, 0])
    counts = LabelCounts()
    counts.add(truth, predicted, truth, 4)
    found = counts.scores(None)
    assert found["f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_one_label_has_no_areas():
    tally = Tally()
    ones = np.ones(5, dtype=np.int64)
    tally.add(ones, ones, ones, 2)
    tally.rate(ones, ones, np.tile([0.2, 0.8], (5, 1)))
    assert np.isnan(tally.scores(1)["auroc"])
    assert np.isnan(tally.scores(1)["auprc"])
