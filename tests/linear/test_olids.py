import pytest

from tests.oracles.following import ONE, SETTINGS, OneVsRest, follow, stream
from tests.oracles.olids import PlainOLIDS
from varifold import OLIDS

FORMS = [
    {"C": 0.01, "theta": 8.0, "lam": 30.0, "B": 1.0},
    {"C": 0.5, "theta": 1.0, "lam": 0.05, "B": 0.4},
    {"C": 0.5, "theta": 2.0, "lam": 30.0, "B": 0.01},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_follows_the_equations(form, setting):
    scale = setting["scale"] if form["B"] == 1 else "none"  # scaled, first values are equal: truncation ties
    learner = OLIDS(**form, scale=scale, fit_intercept=setting["fit_intercept"])
    instances = [(x, y, w) for x, y, w in stream(n=120, d=8, labels=setting["labels"], weights=setting["weights"]) if x]
    history = []
    follow(learner, OneVsRest(lambda: PlainOLIDS(**form, intercept=ONE, history=history)), instances)


def test_a_rare_class_moves_the_weights_more():
    few, many = OLIDS(scale="none", fit_intercept=False), OLIDS(scale="none", fit_intercept=False)
    for step in range(100):
        for learner, label in ((few, step % 10 == 0), (many, step % 10 != 0)):
            learner.learn_one({"b": float(step % 7)}, label)
    steps = []
    for learner in (few, many):
        before = learner.margins_one({"b": 1.0})[True]
        learner.learn_one({"b": 1.0}, True)
        steps.append(learner.margins_one({"b": 1.0})[True] - before)
    assert steps[0] > steps[1]


def test_explanations_sum_to_the_margin():
    model = OLIDS()
    for x, y, w in stream(n=100):
        model.learn_one(x, y, w)
    for x, _, _ in stream(n=20, seed=5):
        if x:
            assert sum(model.explain_one(x, "label 1").values()) == pytest.approx(model.margins_one(x)["label 1"])
