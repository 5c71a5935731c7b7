import numpy as np
import pytest

from varifold import AROW, FOBOS, FTRLADP, OCDS, OGD, OLIDS, OLSF, OLVF, PA, Block, FTRLProximal

LEARNERS = [OLVF, AROW, PA, OLSF, OGD, FOBOS, FTRLProximal, FTRLADP, OLIDS, OCDS]


def noise(n=600, d=30, seed=0):
    """Values that say nothing of a label whose commoner side has three quarters."""
    rng = np.random.default_rng(seed)
    rows = [{f"f{j}": float(rng.normal()) for j in np.flatnonzero(rng.random(d) < 0.5)} for _ in range(n)]
    return Block.from_dicts(rows, [bool(v) for v in rng.random(n) < 0.25])


def errors(model, block):
    codes, _ = model.run_block(block)
    truth = np.array([model.classes.index(label) for label in block.labels.values])[block.codes]
    return int((codes != truth).sum())


@pytest.mark.parametrize("make", LEARNERS)
def test_noise_is_predicted_as_the_commoner_class(make):
    block = noise()
    assert errors(make(), block) <= min(np.bincount(block.codes)) + 0.03 * len(block)


def test_leaning_saves_errors_on_noise():
    block = noise(200)
    assert sum(errors(make(), block) for make in LEARNERS) < 0.9 * sum(
        errors(make(majority_bias=False), block) for make in LEARNERS
    )


@pytest.mark.parametrize("make", LEARNERS)
def test_the_weights_are_those_of_the_method(make):
    block = noise(200)
    leaning, upright = make(), make(majority_bias=False)
    leaning.learn_many(block)
    upright.learn_many(block)
    assert [f.weight for f in leaning.features.values()] == [f.weight for f in upright.features.values()]


def test_nothing_leans_without_intercept():
    block = noise(200)
    leaning, upright = PA(fit_intercept=False), PA(fit_intercept=False, majority_bias=False)
    assert errors(leaning, block) == errors(upright, block)
