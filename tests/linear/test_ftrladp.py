import numpy as np
import pytest

from tests.oracles.ftrladp import PlainFTRLADP
from tests.oracles.harness import SETTINGS, OneVsRest, follow, follow_in
from varifold import FTRLADP

FORMS = [
    {},
    {"decay": 0, "kappa": 0.3, "LP": 0.5},
    {"decay": 1},
    {"decay": 2},
    {"decay": 3},
    {"L1": 0.2},
    {"L2": 0.5, "decay": 1},
    {"per_coordinate": True},
    {"per_coordinate": True, "L1": 0.1, "L2": 0.2, "decay": 3},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_follows_the_equations(form, setting):
    follow_in(lambda **kw: FTRLADP(**form, **kw), lambda: PlainFTRLADP(**form), setting)


def drifting(n, d, seed):
    """The truth turns round several times; a feature is away for hundreds of rounds."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d)
    for step in range(n):
        if step % 700 == 650:
            truth = -truth
        row = rng.normal(size=d)
        there = rng.random(d) < 0.4
        there[0] = step % 900 < 30
        there[1] = True
        yield {f"f{j}": float(row[j]) for j in np.flatnonzero(there)}, bool(row @ truth > 0), 1.0


@pytest.mark.parametrize("form", [{}, {"decay": 0}, {"decay": 1, "kappa": 0.5}, {"LP": 0.3}], ids=str)
def test_closed_form_over_thousands_of_rounds_with_drift(form):
    twin = OneVsRest(lambda: PlainFTRLADP(**form))
    follow(FTRLADP(scale="none", **form), twin, drifting(3000, 8, seed=1))
    assert twin.problems[0].drifts >= 2


def test_the_running_sum_is_taken_in_before_it_grows_large():
    """With κ = 1 and an error-free stream the centre forgets at once, and A grows by about one a round."""
    form = {"decay": 2, "kappa": 1.0}
    model, twin = FTRLADP(scale="none", **form), PlainFTRLADP(**form)
    rng = np.random.default_rng(0)
    for step in range(11_000):
        x = {"a": float(rng.choice([-1, 1])), **({"b": 1.0} if step % 1000 == 0 else {})}
        y = x["a"] > 0
        if step == 0:
            y = False
        model.learn_one(x, y)
        twin.learn({"one": 1.0, **x}, 1.0 if y else -1.0, 1.0, set())
    state = model._engine.model.dump(1)["shared"][0]
    assert state[2] == 11_000
    assert state[1] < 10_000
    for probe in ({"a": 1.0}, {"b": 1.0}, {"a": 0.5, "b": -1.0}):
        assert model.margins_one(probe)[True] == pytest.approx(twin.score({"one": 1.0, **probe}), rel=1e-9, abs=1e-9)


def test_l1_keeps_weak_features_at_zero():
    rng = np.random.default_rng(0)
    model = FTRLADP(L1=30.0)
    for _ in range(500):
        x = {f"noise {j}": rng.normal() for j in range(5)} | {"signal": rng.normal()}
        model.learn_one(x, x["signal"] > 0)
    weights = {name: feature.weight for name, feature in model.features.items()}
    assert weights.pop("signal") > 0
    assert set(weights.values()) == {0.0}
