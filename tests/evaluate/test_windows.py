"""Curves: the points, what they count, and that long streams do not make them grow."""

import numpy as np
import pytest

import varifold
from varifold.errors import ParameterError
from varifold.evaluate import prequential
from varifold.evaluate.tasks import label_losses
from varifold.evaluate.windows import Windows


def growing(n):
    """A stream in which feature j lives from instance 100 j to 100 j + 150."""
    for i in range(n):
        yield {f"f{j}": 1.0 for j in range(n // 100 + 1) if 100 * j <= i < 100 * j + 150}, i % 2


def pairs_block(n):
    rows, labels = zip(*growing(n), strict=True)
    return varifold.Block.from_dicts(rows, labels)


def test_windows_of_a_known_length():
    curve = prequential(varifold.OLVF(), pairs_block(1000), curve_points=20).curve
    np.testing.assert_array_equal(curve.at, np.arange(50, 1001, 50))
    np.testing.assert_array_equal(curve.alive, [1, 1, *[2, 1] * 9])
    np.testing.assert_array_equal(curve.known, [1, 1, *np.repeat(np.arange(2, 11), 2)])
    np.testing.assert_array_equal(curve.present, curve.alive)


def test_curve_of_errors_is_the_running_share():
    pairs = [({"f": 1.0}, int(v)) for v in np.random.default_rng(0).random(500) < 0.3]
    learner = varifold.OLVF()
    wrong = []
    for x, y in pairs:
        wrong.append(learner.predict_one(x) != y)
        learner.learn_one(x, y)
    curve = prequential(varifold.OLVF(), pairs, curve_points=7).curve
    np.testing.assert_array_equal(curve.at, [72, 144, 216, 288, 360, 432, 500])
    np.testing.assert_allclose(curve.cer, [np.mean(wrong[:end]) for end in curve.at])
    np.testing.assert_allclose(
        curve.window_cer, [np.mean(wrong[max(0, e - 72) : e]) for e in curve.at[:-1]] + [np.mean(wrong[432:])]
    )


def test_curve_of_the_log_loss_is_the_running_mean():
    pairs = [({"f": float(v)}, int(v > 0.5)) for v in np.random.default_rng(0).normal(0.5, 1.0, 500)]
    learner = varifold.OLVF()
    losses = []
    for x, y in pairs:
        probability = learner.predict_proba_one(x).get(y)
        losses.append(np.nan if probability is None else -np.log(max(probability, 1e-15)))
        learner.learn_one(x, y)
    curve = prequential(varifold.OLVF(), pairs, curve_points=7).curve
    np.testing.assert_allclose(curve.log_loss, [np.nanmean(losses[:end]) for end in curve.at])
    starts = [0, *curve.at[:-1]]
    windows = [np.nanmean(losses[lo:hi]) for lo, hi in zip(starts, curve.at, strict=True)]
    np.testing.assert_allclose(curve.window_log_loss, windows)
    p = np.exp(-np.array(losses))
    odds = np.log(p / (1 - p))
    for found, expected in ((curve.square, (1 - p) ** 2), (curve.hinge, np.maximum(0, 1 - odds))):
        np.testing.assert_allclose(found, [np.nanmean(expected[:end]) for end in curve.at], rtol=1e-9)
    merged = prequential(varifold.OLVF(), iter(pairs), curve_points=5).curve
    np.testing.assert_allclose(merged.log_loss, [np.nanmean(losses[:end]) for end in merged.at])
    np.testing.assert_allclose(merged.square, [np.nanmean((1 - p[:end]) ** 2) for end in merged.at])


def test_a_certain_label_has_no_hinge_loss():
    losses = label_losses(np.array([0.0, np.log(2.0), 1e-9, np.nan]))
    assert losses[0].tolist() == [0.0, 0.0, 0.0]
    assert losses[1] == pytest.approx([np.log(2.0), 0.25, 1.0])
    assert losses[2, 2] == 0.0
    assert np.isnan(losses[3]).all()


def test_unknown_length_merges_windows_but_counts_the_same():
    n = 5000
    long = prequential(varifold.OLVF(), growing(n), curve_points=10).curve
    assert 10 <= len(long.at) <= 20
    assert long.at[-1] == n
    width = int(long.at[0])
    rows = [x for x, _ in growing(n)]
    expected = [len({name for x in rows[lo : lo + width] for name in x}) for lo in range(0, n, width)]
    np.testing.assert_array_equal(long.alive, expected)
    assert long.known[-1] == 50


def test_importances_are_tracked_at_every_point():
    for stream in (pairs_block(500), growing(500)):
        learner = varifold.OLVF()
        curve = prequential(learner, stream, track="importances", curve_points=10).curve
        assert len(curve.importances) == len(curve.at)
        assert [len(found) for found in curve.importances] == curve.known.tolist()
        assert curve.importances[-1] == {name: f.weight for name, f in learner.features.items()}


def test_importances_of_merged_windows_are_those_at_their_ends():
    windows, block = Windows(4, None), pairs_block(8)
    for _ in range(20):
        windows.add(block, np.zeros(8), np.full(8, np.nan), np.ones(8, dtype=bool))
        windows.snapshot({"end": windows.end})
    assert [found["end"] for found in windows.snapshots] == windows.ends == [32, 64, 96, 128, 160]


def test_tracking_does_not_change_the_run():
    plain = prequential(varifold.AROW(), pairs_block(500))
    tracked = prequential(varifold.AROW(), pairs_block(500), track="importances")
    assert tracked.metrics() | {"us_per_instance": 0} == pytest.approx(plain.metrics() | {"us_per_instance": 0})


def test_rejections():
    with pytest.raises(ParameterError, match="curve_points"):
        prequential(varifold.OLVF(), [], curve_points=0)
    with pytest.raises(ParameterError, match="track"):
        prequential(varifold.OLVF(), [], track="weights")
