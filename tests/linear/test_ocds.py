import numpy as np
import pytest

from tests.oracles.harness import ONE, SETTINGS, follow_in
from tests.oracles.ocds import PlainOCDS
from varifold import OCDS

FORMS = [
    {},
    {"alpha": 0.1, "beta1": 0.01, "T": 1},
    {"beta1": 1e-3, "beta2": 0.05, "T": 7},
    {"gamma": 0.4, "alpha": 3.0},
    {"max_dense": 4, "beta1": 1e-3},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_follows_the_equations(form, setting):
    whole = {"alpha": 1.0, "beta1": 0.0, "beta2": 0.0, "gamma": 1.0, "T": 16, "max_dense": 512, **form}
    known = []
    follow_in(
        lambda **kw: OCDS(**form, majority_bias=False, **kw),  # margins of 1e-12 occur: whose sign is rounding
        lambda: PlainOCDS(**whole, intercept=ONE, known=known),
        setting,
        n=110,
        d=7,
        late=2,
    )


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6, 1e100])
def test_raw_scale_does_not_diverge(size):
    rng = np.random.default_rng(0)
    model = OCDS(scale="none")
    for _ in range(2000):
        row = rng.normal(size=6) * size
        x = {f"f{j}": row[j] for j in range(6) if rng.random() < 0.5}
        model.learn_one(x, bool(row[0] > 0))
    margins = [f for j in range(6) for f in model.margins_one({f"f{j}": size}).values()]
    assert np.isfinite(margins).all()
    assert np.abs(margins).max() < 1e3


def test_an_absent_feature_is_recovered_from_its_twin():
    """The label is the sign of a; b is nearly a. Where a is gone, b replaces it though it was never alone before."""
    rng = np.random.default_rng(0)
    model = OCDS()
    for _ in range(3000):
        a = rng.normal()
        model.learn_one({"a": a, "b": a + 0.1 * rng.normal()}, bool(a > 0))
    assert model.predict_one({"b": 2.0}) is True
    assert model.predict_one({"b": -2.0}) is False


def test_a_full_graph_is_noted():
    model = OCDS(max_dense=3)
    model.learn_one({"a": 1.0, "b": 2.0, "c": 3.0}, True)
    assert not any("max_dense" in note for note in model.traits.notes)
    model.learn_one({"d": 1.0}, False)
    assert any("max_dense=3" in note for note in model.traits.notes)
