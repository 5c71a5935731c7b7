import pytest

from tests.oracles.harness import SETTINGS, follow_in
from tests.oracles.pa import PlainPA
from varifold import PA


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("mode", ["pa", "pa1", "pa2"])
def test_follows_the_equations(mode, setting):
    follow_in(lambda **kw: PA(C=0.05, mode=mode, **kw), lambda: PlainPA(mode, 0.05), setting)


def test_an_instance_of_zeros_moves_nothing():
    model = PA(scale="none", fit_intercept=False)
    for _ in range(3):
        model.learn_one({"a": 0.0}, 0)
        model.learn_one({"a": 0.0}, 1)
    assert model.features["a"].weight == 0.0
