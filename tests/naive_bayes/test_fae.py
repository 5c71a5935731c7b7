"""FAE against the ensemble written out, and what it is for."""

import numpy as np
import pytest

from tests.oracles.fae import PlainFAE
from tests.oracles.harness import follow, mixed_stream
from varifold import FAE, NB3


def drifting(n, seed=0, words=30, period=150):
    """(x, y, w): three words per period separate the labels, among others that do not."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        y = int(rng.integers(2))
        x = {f"word {j}": 1.0 for j in np.flatnonzero(rng.random(words) < 0.2)}
        for j in range(3):
            if rng.random() < (0.7 if y else 0.1):
                x[f"telling {t // period} {j}"] = 1.0
        yield x, f"label {y}", 1.0


SETTINGS = [
    {},
    {"M": 4, "N": 8, "r": 3, "max_learners": 3},
    {"M": 6, "N": 5, "vote": "label", "prior": 0.3, "m": 12, "p": 1},
    {"M": 2, "f": 0.0, "N": 20, "p": 2, "r": 0},
]


@pytest.mark.parametrize("params", SETTINGS)
@pytest.mark.parametrize(("labels", "weights", "strings"), [(2, False, False), (3, True, True)])
def test_follows_the_ensemble_written_out(params, labels, weights, strings):
    rows = mixed_stream(130, labels=labels, weights=weights, strings=strings, seed=labels)
    follow(FAE(**params), PlainFAE(**params), rows, tolerance=1e-12)


def test_follows_it_while_words_change():
    params = {"M": 6, "N": 10, "p": 2, "max_learners": 4}
    plain = PlainFAE(**params)
    follow(FAE(**params), plain, drifting(250, period=60), tolerance=1e-12)
    assert plain.removed > 3, "the stream does not remove any member"
    assert plain.replaced > 3, "the stream never fills the ensemble"


@pytest.mark.parametrize("evict", ["oldest", "lightest"])
def test_follows_it_through_evictions(evict):
    params = {"M": 5, "N": 10}
    learner = FAE(**params, max_features=7, evict=evict)
    rows = mixed_stream(130, labels=2, weights=False, strings=True, seed=4)
    follow(learner, PlainFAE(**params), rows, tolerance=1e-9)
    assert learner._engine.space.evictions > 5


def error(model, rows):
    wrong = 0
    for x, y, _ in rows:
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    return wrong / len(rows)


def test_members_take_the_words_of_their_time():
    model = FAE(M=3)
    assert error(model, list(drifting(600, period=300))) < error(NB3(), list(drifting(600, period=300)))
    assert {name for name in model.learners()[-1].features if name.startswith("telling")}
    ages = [member.age for member in model.learners()]
    assert ages == sorted(ages, reverse=True)
    assert sum(member.weight for member in model.learners()) == pytest.approx(1.0)


@pytest.mark.parametrize("vote", ["probability", "label"])
def test_explanations_name_the_telling_word(vote):
    model = FAE(M=4, vote=vote)
    for x, y, w in drifting(150):
        model.learn_one(x, y, w)
    x = {"telling 0 0": 1.0, "telling 0 1": 1.0, "word 3": 1.0}
    for label in model.classes:
        parts = model.explain_one(x, label)
        assert sum(parts.values()) == pytest.approx(model.margins_one(x)[label], abs=1e-12)
    parts = model.explain_one(x, "label 1")
    assert parts["telling 0 0"] > abs(parts["word 3"])
    assert model.features["telling 0 0"].role == "chosen"


def test_evidence_that_cancels_is_left_to_the_intercept():
    model = FAE(M=2)
    both = {"a": 1.0, "b": 1.0}
    model.learn_one(both, 0)
    for step in range(40):
        model.learn_one({"a" if step % 2 else "b": 1.0}, step % 2)
    model.learn_one(both, 1)
    assert len(model.learners()) == 1
    parts = model.explain_one(both, 1)
    assert parts == {"(intercept)": pytest.approx(0.5), "a": 0.0, "b": 0.0}


def test_the_bound_holds():
    model = FAE(M=2, f=0.0, p=1000, max_learners=3)
    for x, y, w in drifting(200, period=20):
        model.learn_one(x, y, w)
    assert len(model.learners()) == 3
