import copy
import pickle

import numpy as np
import pytest

from tests.oracles.hedge import Experts
from varifold._numeric.hedge import Weights

SETTINGS = [
    ("fixed", 0.05, 0.0),
    ("fixed", 0.7, 0.02),
    ("horizon", 400.0, 0.0),
    ("horizon", 400.0, -1.0),
    ("anytime", 0.0, 0.0),
    ("anytime", 0.0, 0.1),
    ("anytime", 0.0, -1.0),
]


@pytest.mark.parametrize(("rate", "eta", "share"), SETTINGS)
@pytest.mark.parametrize("k", [2, 5])
def test_follows_the_plain_formula(rate, eta, share, k):
    rng = np.random.default_rng(k)
    ours, plain = Weights(k, rate, eta, share), Experts(k, rate, eta, share)
    for step in range(400):
        np.testing.assert_allclose(ours.weights(), plain.weights(), rtol=1e-9, atol=1e-12)
        losses = rng.uniform(0, 1, k) + (np.arange(k) == step // 200)
        w = [1.0, 2.5, 0.25][step % 3]
        ours.learn(losses, w)
        plain.learn(losses, w)


@pytest.mark.parametrize(("rate", "eta", "share"), SETTINGS)
def test_any_range_of_losses(rate, eta, share):
    ours = Weights(3, rate, eta, share)
    for losses in ([1e308, 5.0, np.inf], [-1e9, 1e9, 0.0], [np.nan, 1.0, 2.0], [0.0, 0.0, 0.0]):
        ours.learn(losses)
        weights = ours.weights()
        assert np.isfinite(weights).all()
        assert weights.sum() == pytest.approx(1.0)


def test_regret_bound_holds_in_the_anytime_form():
    rng = np.random.default_rng(3)
    n, k = 2000, 4
    losses = (rng.random((n, k)) < [0.3, 0.4, 0.5, 0.31]).astype(float)
    ours, mixed = Weights(k, "anytime"), 0.0
    for row in losses:
        mixed += ours.weights() @ row
        ours.learn(row)
    assert mixed <= losses.sum(axis=0).min() + 2 * np.sqrt(n / 2 * np.log(k)) + np.sqrt(np.log(k) / 8)


def test_sharing_follows_a_switch():
    shared, plain = Weights(2, "anytime", share=-1.0), Weights(2, "anytime")
    for step in range(1000):
        losses = [0.0, 1.0] if step < 500 else [1.0, 0.0]
        shared.learn(losses)
        plain.learn(losses)
        if step == 600:
            assert shared.weights()[1] > 0.99
            assert plain.weights()[1] < 0.01


@pytest.mark.parametrize(("rate", "eta", "share"), SETTINGS)
def test_dump_and_fill_continue_to_the_bit(rate, eta, share):
    rng = np.random.default_rng(0)
    first, second = Weights(3, rate, eta, share), Weights(3, rate, eta, share)
    for _ in range(50):
        first.learn(rng.random(3))
    second.fill(first.dump())
    for _ in range(50):
        losses = rng.random(3)
        first.learn(losses)
        second.learn(losses)
        assert (first.weights() == second.weights()).all()


@pytest.mark.parametrize("bad", [(0, "anytime", 0, 0), (2, "fixed", 0, 0), (2, "horizon", -1, 0), (2, "fixed", 1, -1)])
def test_settings_that_make_no_sense(bad):
    with pytest.raises(ValueError, match=r"expert|eta|share"):
        Weights(*bad)


def test_wrong_number_of_losses():
    with pytest.raises(ValueError, match="2 losses for 3 experts"):
        Weights(3).learn([1.0, 2.0])
    with pytest.raises(ValueError, match="belong"):
        Weights(3).fill(np.zeros(3))


@pytest.mark.parametrize(
    ("rate", "eta", "share"), [("fixed", 0.5, 0.0), ("horizon", 100.0, -1.0), ("anytime", 0.0, 0.1)]
)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_goes_on_to_the_bit(rate, eta, share, duplicate):
    weights, rng = Weights(3, rate, eta, share), np.random.default_rng(0)
    for _ in range(20):
        weights.learn(rng.random(3))
    other = duplicate(weights)
    losses = rng.random(3)
    for each in (weights, other):
        each.learn(losses)
    assert np.array_equal(weights.weights(), other.weights())
    assert np.array_equal(weights.dump(), other.dump())
