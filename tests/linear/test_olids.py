import numpy as np
import pytest

from tests.oracles.harness import ONE, SETTINGS, OneVsRest, follow, stream
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


def with_strings(instances, several, seed=3):
    """The stream with string columns, one of them absent at times."""
    rng = np.random.default_rng(seed)
    for x, y, w in instances:
        levels = {}
        if several:
            levels["valve"] = ["open", "shut", "half"][rng.integers(0, 3) if y == "label 1" else rng.integers(0, 2)]
        if rng.random() < 0.6:
            levels["city"] = ["rome", "oslo", "bern", "nice"][rng.integers(0, 4)]
        x = {name: value for name, value in x.items() if name != "f0"}  # constant: as an indicator, it would tie
        yield {**x, **levels}, y, w


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("setting", SETTINGS)
def test_string_columns_follow_the_equations(form, setting):
    scale = setting["scale"] if form["B"] == 1 else "none"
    learner = OLIDS(**form, scale=scale, fit_intercept=setting["fit_intercept"])
    clip = learner.clip if scale == "standard" else None
    plain = stream(n=120, d=6, labels=setting["labels"], weights=setting["weights"])
    several = form["B"] == 1  # values that come together have equal weights: truncation ties
    rows = [row for row in with_strings(plain, several) if row[0]]
    history = []
    follow(learner, OneVsRest(lambda: PlainOLIDS(**form, intercept=ONE, history=history, clip=clip)), rows)


def test_string_columns_are_learned():
    """Every value of a string column counts, not those of the row before alone."""
    rng = np.random.default_rng(0)
    errors = {"column": 0, "own": 0}
    learners = {rows: OLIDS(indicator_rows=rows) for rows in errors}
    for step in range(600):
        values = rng.integers(0, 3, 4)
        x, y = {f"c{j}": "abc"[v] for j, v in enumerate(values)}, bool(values[0] == 1 or values[1] == 2)
        for rows, learner in learners.items():
            errors[rows] += step > 100 and learner.predict_one(x) != y
            learner.learn_one(x, y)
    assert errors["column"] < 0.1 * 500 < errors["own"]


def test_numbers_are_learned_as_before():
    """Without string columns both ways are the same, to the last bit."""
    for B in (1.0, 0.4):
        one, other = OLIDS(B=B), OLIDS(B=B, indicator_rows="own")
        for x, y, w in stream(n=200, labels=3, weights=True):
            one.learn_one(x, y, w)
            other.learn_one(x, y, w)
        for x, _, _ in stream(n=50, seed=9):
            assert one.margins_one(x) == other.margins_one(x)


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
