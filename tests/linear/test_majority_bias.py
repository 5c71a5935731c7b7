import inspect
import pickle

import numpy as np
import pytest

from varifold import AROW, FOBOS, FTRLADP, OCDS, OGD, OLIDS, OLSF, OLVF, OVFIV, PA, Block, FTRLProximal
from varifold.base import files
from varifold.base.spec import parse_model
from varifold.errors import ParameterError

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
def test_noise_is_answered_by_the_commoner_class(make):
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


# ---------------------------------------------------------------- its old name


@pytest.mark.parametrize("make", LEARNERS)
def test_the_old_name_is_accepted_and_only_the_new_one_shown(make):
    for value in (True, False):
        model = make(lean=value)
        assert model.majority_bias is value
        assert "lean" not in model._get_params()
        assert "lean" not in repr(model)
        assert model.clone().majority_bias is value
        assert model.clone({"lean": not value}).majority_bias is not value
        assert pickle.loads(pickle.dumps(model)).majority_bias is value
    assert make().majority_bias
    assert "lean" not in inspect.signature(make).parameters


def test_both_names_are_refused():
    with pytest.raises(ParameterError, match="'lean' is the old name of 'majority_bias'"):
        OLVF(lean=False, majority_bias=False)
    with pytest.raises(ParameterError, match="old name"):
        parse_model("olvf:lean=false,majority_bias=false")
    with pytest.raises(ParameterError, match="old name"):
        OLVF().clone({"lean": False, "majority_bias": False})


def test_the_old_name_is_checked_under_the_new_one():
    with pytest.raises(ParameterError, match="The 'majority_bias' parameter of OLVF must be a bool"):
        OLVF(lean=3)


def test_the_old_name_is_accepted_in_specifications():
    assert parse_model("olvf:lean=false")().majority_bias is False
    assert parse_model("ovfiv:base=(arow:lean=false)")().base.majority_bias is False
    assert OVFIV(base="arow:lean=false").base == "arow:lean=false"


@pytest.mark.parametrize("value", [True, False])
def test_the_old_name_is_accepted_in_files(value, tmp_path):
    model = OLVF(majority_bias=value)
    model.learn_many(noise(50))
    header, arrays = files.decode(model.to_bytes(), "new")
    header["params"]["lean"] = header["params"].pop("majority_bias")
    files.write(tmp_path / "old", header, arrays)
    old = OLVF.load(tmp_path / "old")
    assert old.majority_bias is value
    assert old.to_bytes() == model.to_bytes()


def test_a_file_older_than_the_parameter_means_without(tmp_path):
    model = OLVF(majority_bias=False)
    model.learn_many(noise(50))
    header, arrays = files.decode(model.to_bytes(), "new")
    del header["params"]["majority_bias"]
    files.write(tmp_path / "older", header, arrays)
    assert OLVF.load(tmp_path / "older").majority_bias is False


def test_a_subclass_with_a_constructor_of_its_own():
    class Small(OLVF):
        def __init__(self, lean=True):
            super().__init__(C=0.5, lean=lean)

    assert Small(lean=False).majority_bias is False
    assert Small().C == 0.5
