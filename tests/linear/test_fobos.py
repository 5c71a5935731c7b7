import numpy as np
import pytest

from tests.oracles.fobos import PlainFOBOS
from tests.oracles.harness import ONE, SETTINGS, follow_in
from varifold import FOBOS


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("lam", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_lazy_thresholds_equal_eager_ones(loss, lam, setting):
    follow_in(
        lambda **kw: FOBOS(eta=0.5, lam=lam, loss=loss, **kw),
        lambda: PlainFOBOS(0.5, lam, loss, intercept=ONE),
        setting,
    )


def test_an_absent_feature_fades_away():
    rng = np.random.default_rng(0)
    model = FOBOS(eta=0.3, lam=0.05)
    for _ in range(100):
        value = rng.normal()
        model.learn_one({"gone": value, "here": rng.normal()}, value > 0)
    before = model.features["gone"].weight
    for _ in range(5000):
        model.learn_one({"here": rng.normal()}, bool(rng.random() < 0.5))
    assert before > 0
    assert model.features["gone"].weight == 0.0
