import numpy as np
import pytest

from tests.oracles.harness import ONE, SETTINGS, follow_in
from tests.oracles.pa import PlainOLSF
from varifold import OLSF

FORMS = [
    {"mode": "pa1", "C": 0.05, "lam": 30.0, "B": 1.0},
    {"mode": "pa", "C": 1.0, "lam": 0.5, "B": 1.0},
    {"mode": "pa2", "C": 0.1, "lam": 0.3, "B": 0.4},
    {"mode": "pa1", "C": 0.05, "lam": 30.0, "B": 0.3},
    {"mode": "pa1", "C": 0.5, "lam": 0.01, "B": 0.01},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_follows_the_equations(form, setting):
    if form["B"] < 1:
        setting = {**setting, "scale": "none"}  # scaled, the first values of all features are equal: truncation ties
    known = set()
    bias = form["lam"] != 0.5  # there two weights cancel at the third step: the sign of what is left is rounding
    follow_in(
        lambda **kw: OLSF(**form, majority_bias=bias, **kw),
        lambda: PlainOLSF(**form, intercept=ONE, known=known),
        setting,
    )


def test_keeps_a_share_of_the_weights_and_projects():
    rng = np.random.default_rng(0)
    model = OLSF(B=0.2, lam=0.7, C=1.0)
    for _ in range(300):
        x = {f"f{j}": rng.normal() for j in range(40)}
        model.learn_one(x, x["f3"] > 0)
    weights = {name: feature.weight for name, feature in model.features.items()}
    assert sum(w > 0 for w in weights.values()) == 8
    assert max(weights, key=weights.get) == "f3"
    assert sum(weights.values()) <= 0.7 + 1e-12


def test_projecting_for_ever_does_not_underflow():
    rng = np.random.default_rng(0)
    model = OLSF(B=0.5, lam=1e-3, C=1.0)
    for _ in range(3000):
        x = {f"f{j}": rng.normal() for j in range(4)}
        model.learn_one(x, x["f3"] > 0)
    assert 0 < sum(feature.weight for feature in model.features.values()) <= 1e-3 + 1e-12
