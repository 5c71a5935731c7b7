import math

import numpy as np
import pytest

from tests.oracles.gaussiannb import PlainGaussianNB
from tests.oracles.harness import stream
from varifold import GaussianNB


def with_strings(instances):
    rng = np.random.default_rng(9)
    for x, y, w in instances:
        if x and rng.random() < 0.7:
            x = {
                **x,
                "colour": "red" if rng.random() < 0.3 + 0.4 * (y == "label 1") else str(rng.choice(["blue", "green"])),
            }
        if x and rng.random() < 0.2:
            x["f1"] = "broken"
        yield x, y, w


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize(("prior", "intercept", "weights"), [(1.0, True, False), (0.1, False, True), (5.0, True, True)])
def test_follows_the_definition(labels, prior, intercept, weights):
    model, plain = GaussianNB(prior=prior, fit_intercept=intercept), PlainGaussianNB(prior, intercept)
    names = set()
    for x, y, w in with_strings(stream(n=200, d=6, labels=labels, weights=weights)):
        known = {k: v for k, v in x.items() if (k, v if isinstance(v, str) else None) in names}
        if known:
            found, expected = model.margins_one(x), plain.scores(known)
            assert list(found) == list(expected)
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9)
        model.learn_one(x, y, w)
        if w > 0:
            plain.learn(x, y, w)
            names |= {(k, v if isinstance(v, str) else None) for k, v in x.items()}


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize("weights", [False, True])
def test_online_em_follows_the_definition(labels, weights):
    """Two of three instances have no label: each class learns some of them by its probability."""
    model, plain = GaussianNB(prior=2.0), PlainGaussianNB(2.0)
    for t, (x, y, w) in enumerate(with_strings(stream(n=250, d=5, labels=labels, weights=weights))):
        known = plain.known(x)
        if known:
            found, expected = model.margins_one(x), plain.scores(known)
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9)
        y = y if t % 3 == 0 or t < 9 else None
        model.learn_one(x, y, w)
        if w > 0 and y is not None:
            plain.learn(x, y, w)
        elif w > 0:
            plain.learn_unlabelled(x, w)
    assert plain.unlabelled > 50


@pytest.mark.parametrize("intercept", [True, False])
def test_numbers_alone_are_scored_as_those_next_to_strings(intercept):
    """Two classes and no string values have a path of their own: it must agree to the last bit."""
    alone, next_to = GaussianNB(fit_intercept=intercept), GaussianNB(fit_intercept=intercept)
    rows = [row for row in stream(n=120, d=200, weights=True) if row[0]]
    assert max(len(x) for x, _, _ in rows) > 64
    for step, (x, y, w) in enumerate(rows):
        if step > 2:
            assert alone.margins_one(x) == next_to.margins_one(x)
        alone.learn_one(x, y, w)
        next_to.learn_one({**x, "colour": "red"} if step == 0 else x, y, w)
    assert len(alone.margins_one(rows[0][0])) == 2


def test_extreme_values_stay_finite():
    model = GaussianNB()
    for step in range(50):
        model.learn_one({"huge": 1e308 * (-1) ** step, "tiny": 1e-308 * step, "same": 7.0}, step % 2)
    for probe in ({"huge": -1e308}, {"tiny": 1e-300}, {"same": 8.0}, {"huge": 0.0, "tiny": 1.0, "same": 7.0}):
        assert all(math.isfinite(f) for f in model.margins_one(probe).values())
        assert sum(model.predict_proba_one(probe).values()) == pytest.approx(1.0)
    assert model.margins_one({"same": 8.0})[0] == model.margins_one({"same": 7.0})[0]


def test_one_feature_cannot_say_everything():
    model = GaussianNB()
    rng = np.random.default_rng(0)
    for step in range(200):
        model.learn_one({"a": rng.normal() + step % 2, "b": rng.normal() + step % 2}, step % 2)
    assert max(abs(part) for part in model.explain_one({"a": 1e12, "b": 0.0}).values()) <= 50.0


def test_a_column_that_is_evicted_takes_its_counts_with_it():
    model, fresh = GaussianNB(max_features=2), GaussianNB(max_features=2)
    for step in range(20):
        model.learn_one({"colour": "red"}, step % 2)
    for learner in (model, fresh):
        for step in range(20):
            learner.learn_one({"a": 1.0 * (step % 2), "b": 2.0}, step % 2)
        learner.learn_one({"kind": "new"}, 0)
        learner.learn_one({"kind": "new"}, 0)
        learner.learn_one({"kind": "new"}, 1)
    assert model.explain_one({"kind": "new"}, 0)["kind=new"] == fresh.explain_one({"kind": "new"}, 0)["kind=new"]
