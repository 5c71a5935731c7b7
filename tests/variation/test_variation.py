"""The variation classifier of OVFIV alone, against the plain one and against OVFIV itself."""

import numpy as np
import pytest

import varifold
from tests.oracles.ftrladp import PlainFTRLADP
from tests.oracles.harness import stream
from tests.oracles.ovfiv import PlainOVFIV
from varifold import OVFIV, Variation


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("encode", ["absence", "presence"])
@pytest.mark.parametrize("bias", [True, False])
def test_follows_the_equations(labels, encode, bias):
    learner = Variation(encode=encode, fit_intercept=bias, lam=0.5)
    twin = PlainOVFIV(PlainFTRLADP, "adaptive", 0.5, encode == "presence", bias, alone=True)
    compared = 0
    for step, (x, y, w) in enumerate(stream(labels=labels, weights=True)):
        found = learner.margins_one(x)
        if len(found) > 1:
            expected = twin.scores({name: value for name, value in x.items() if name in twin.known})
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9, err_msg=f"step {step}"
            )
            compared += 1
        learner.learn_one(x, y, w)
        if w > 0:
            twin.meet(y)
            twin.learn(x, y, w, set(x) - twin.known)
    assert compared > 100


def test_values_are_not_looked_at():
    one, other = Variation(), Variation()
    rng = np.random.default_rng(0)
    for x, y, w in stream(n=150):
        one.learn_one(x, y, w)
        other.learn_one({name: float(rng.normal()) for name in x}, y, w)
    for x, _, _ in stream(n=30, seed=4):
        assert one.predict_proba_one(x) == other.predict_proba_one(dict.fromkeys(x, 0.0))


def test_absences_are_explained():
    model = Variation(lam=0.1, encode="absence")
    for step in range(300):
        ill = step % 3 == 0
        model.learn_one({"age": 1.0, **({"x-ray": 2.0} if ill else {})}, ill)
    parts = model.explain_one({"age": 1.0}, True)
    assert parts["x-ray (absent)"] < 0
    assert sum(parts.values()) == pytest.approx(model.margins_one({"age": 1.0})[True])


def test_it_is_a_part_of_ovfiv():
    """Where the values are noise, the mixture follows it."""
    rng = np.random.default_rng(1)
    ensemble, alone, same = OVFIV(encode="absence"), Variation(encode="absence"), 0
    for step in range(800):
        y = bool(rng.random() < 0.5)
        there = rng.random(8) < (0.9 if y else 0.3)
        x = {f"f{j}": float(rng.normal()) for j in np.flatnonzero(there)}
        same += step >= 400 and ensemble.predict_one(x) == alone.predict_one(x)
        ensemble.learn_one(x, y)
        alone.learn_one(x, y)
    assert same > 390


@pytest.mark.parametrize("cls", [Variation, OVFIV])
def test_a_name_after_the_third_label_starts_as_in_a_loaded_model(cls):
    given, loaded = cls(), cls()
    for i, (x, y) in enumerate([({"a": 1.0}, 0), ({"b": 1.0}, 1), ({"a": 1.0}, 2), ({"new": 1.0}, 0), ({"a": 2.0}, 1)]):
        given.learn_one(x, y)
        loaded.learn_one(x, y)
        loaded = varifold.from_bytes(loaded.to_bytes())
        assert given.to_bytes() == loaded.to_bytes(), i
