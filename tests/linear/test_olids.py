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
    learner = OLIDS(**form, scale=setting["scale"], fit_intercept=setting["fit_intercept"])
    instances = [(x, y, w) for x, y, w in stream(n=120, d=8, labels=setting["labels"], weights=setting["weights"]) if x]
    history = []
    follow(learner, OneVsRest(lambda: PlainOLIDS(**form, intercept=ONE, history=history)), instances)


def test_rare_class_weighs_more():
    """Of one instance in ten the class is rare; a larger cost lets it be answered more often."""
    answers = {}
    for theta in (0.1, 8.0):
        model = OLIDS(theta=theta, fit_intercept=True)
        found = 0
        for step in range(600):
            rare = step % 10 == 0
            x = {"a": 1.0 * rare + 0.5 * ((step * 7) % 5), "b": 1.0}
            found += model.predict_one(x) is True
            model.learn_one(x, rare)
        answers[theta] = found
    assert answers[8.0] >= answers[0.1]


def test_explanations_sum_to_the_margin():
    model = OLIDS()
    for x, y, w in stream(n=100):
        model.learn_one(x, y, w)
    for x, _, _ in stream(n=20, seed=5):
        if x:
            assert sum(model.explain_one(x, "label 1").values()) == pytest.approx(model.margins_one(x)["label 1"])
