import numpy as np
import pytest

import varifold
from tests.oracles.additive import Additive as Oracle


def stream(n, seed=0, width=6):
    rng = np.random.default_rng(seed)
    for t in range(n):
        z = rng.normal(size=width)
        x = {f"f{j}": float(z[j]) for j in range(width) if rng.random() < 0.6 and (j < 4 or t > n // 2)}
        yield x, bool(abs(z[0]) + z[1] > 0.9)


@pytest.mark.parametrize("memory", [0.0, 40.0])
def test_follows_the_oracle_step_by_step(memory):
    model = varifold.Additive(scale="none", memory=memory)
    oracle = Oracle(memory=memory)
    sign = {}
    for x, y in stream(700):
        model_slots = {model._engine.space.id_of(name): (v, v) for name, v in x.items() if name in model.features}
        if x and len(model.classes) == 2 and model_slots:
            margin = model.margins_one(x)[model.classes[1]]
            assert margin == pytest.approx(oracle.margin(model_slots), abs=1e-9)
        model.learn_one(x, y)
        sign.setdefault(y, 1.0 if sign else -1.0)
        if x:
            oracle.learn({model._engine.space.id_of(name): (v, v) for name, v in x.items()}, sign[y])


def test_learns_a_hump_that_a_line_cannot():
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, size=1500)
    errors = {}
    for cls in (varifold.Additive, varifold.AROW):
        model = cls()
        guesses = model.predict_learn_many([{"x": float(v)} for v in values], [bool(abs(v) < 0.5) for v in values])
        errors[cls.__name__] = np.mean([g != (abs(v) < 0.5) for g, v in zip(guesses, values, strict=True)])
    assert errors["Additive"] < 0.12
    assert errors["AROW"] > 0.3


def test_features_beyond_max_binned_are_linear_and_noted():
    model = varifold.Additive(max_binned=3)
    for t in range(50):
        model.learn_one({f"f{j}": float(t % (j + 2)) for j in range(6)}, t % 2)
    assert any("max_binned" in note for note in model.traits.notes)
