"""Groups of columns that are near copies: step by step against plain Python, replaced copies, files, eviction."""

import math

import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.groups import Groups
from tests.oracles.harness import OneVsRest
from tests.oracles.ogd import PlainOGD
from varifold import AutoClassifier
from varifold.auto._groups import GroupsModel
from varifold.linear._ogd import OGDRule


def copies(count, seed=0, names=40, change=300, labels=2):
    """Two factors, each quoted by several columns with some noise; every `change` rows half of them are others."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        a, b = rng.normal(size=2)
        first = t // change * 2 % names
        x = {}
        for j in range(first, first + 4):
            x[f"a{j}"] = a + 0.1 * rng.normal()
            x[f"b{j}"] = (-1) ** j * b + 0.1 * rng.normal()
        x["noise"] = rng.normal()
        x["word"] = "left" if rng.random() < 0.5 else "right"
        if rng.random() < 0.2:
            del x[f"a{first}"]
        if rng.random() < 0.02:
            x = {}
        z = 3 * a - 2 * b + math.log(1 / rng.random() - 1)
        yield x, int(np.clip(z + labels / 2, 0, labels - 1))


def engine(**params):
    return class_engine(GroupsModel(OGDRule(10.0)), scale="none", **params)


def members(groups):
    """Return the groups of the oracle as the model lists its own."""
    found = {}
    for name, place in groups.group.items():
        if place:
            found.setdefault(place[0], []).append(name if place[1] > 0 else f"-{name}")
    return sorted(sorted(names) for names in found.values() if len(names) > 1)


@pytest.mark.parametrize("labels", [2, 3])
def test_every_step_follows_the_oracle(labels):
    model, groups, rule = engine(), Groups(), OneVsRest(lambda: PlainOGD(10.0))
    for x, y in copies(1500, labels=labels):
        seen = {}
        if x:
            numbers = {name: value for name, value in x.items() if isinstance(value, float)}
            seen = {0: 1.0, **groups.seen(numbers)}
            if len(rule.labels) > 1 and "noise" in model.space:
                assert model.margins_one(x) == pytest.approx(rule.scores(seen), abs=1e-9)
        rule.meet(y)
        if x:
            rule.learn(seen, y, 1.0, set())
            groups.learn(numbers)
        model.learn_one(x, y)
    assert sorted(sorted(names) for names in model.model.groups()) == members(groups)
    assert sum(len(names) for names in members(groups)) == 24


def test_new_copies_take_over_what_was_learned():
    """No column of the first rows is left at the end; a change of columns does not raise the error."""
    model, wrong = engine(), []
    for x, y in copies(2400, change=200):
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    assert np.mean(wrong[-600:]) < np.mean(wrong[200:800]) + 0.04


def test_a_column_that_is_like_no_other_is_not_seen():
    rng = np.random.default_rng(0)
    model = engine()
    for _ in range(600):
        x = {f"v{j}": float(v) for j, v in enumerate(rng.normal(size=50))}
        model.learn_one(x, bool(x["v0"] > 0))
    assert model.model.groups() == []
    margins = model.margins_one({"v0": 3.0})
    assert margins == model.margins_one({"v0": -3.0})


def test_files_continue_and_both_apis_leave_the_same_state():
    rows = list(copies(700))
    one, saved = engine(), engine()
    for t, (x, y) in enumerate(rows):
        one.learn_one(x, y)
        if t in (30, 90, 400):
            fresh = engine()
            fresh.fill(*saved.dump())
            saved = fresh
        saved.learn_one(x, y)
    arrays, others = one.dump()[2], saved.dump()[2]
    assert all((arrays[name] == others[name]).all() for name in arrays)


@pytest.mark.parametrize("evict", ["oldest", "lightest"])
def test_evicted_columns_leave_their_groups(evict):
    model = engine(max_features=12, evict=evict)
    for x, y in copies(1500, change=100):
        model.learn_one(x, y)
    names = set(model.dump()[0])
    assert model.model.groups()
    assert all(name.lstrip("-") in names for group in model.model.groups() for name in group)
    fresh = engine(max_features=12, evict=evict)
    fresh.fill(*model.dump())
    assert sorted(map(sorted, fresh.model.groups())) == sorted(map(sorted, model.model.groups()))


def test_contributions_sum_to_the_margin():
    model = engine()
    rows = [row for row in copies(500) if row[0]]
    for x, y in rows:
        model.learn_one(x, y)
    for x, _ in rows[-30:]:
        parts, others = model.explain_one(x, 1)
        assert sum(parts.values()) + sum(others.values()) == pytest.approx(model.margins_one(x)[1], abs=1e-9)


def test_files_that_cannot_be_are_rejected():
    model = engine()
    for x, y in copies(60):
        model.learn_one(x, y)
    names, labels, arrays = model.dump()
    assert len(arrays["model.candidate"]) > 2
    twice = arrays["model.candidate"].copy()
    twice[1] = twice[0]
    for message, change in (
        ("occur twice", {"model.candidate": twice}),
        ("places holds numbers outside", {"model.places": arrays["model.places"] + 31}),
    ):
        with pytest.raises(ValueError, match=message):
            engine().fill(names, labels, {**arrays, **change})


def test_the_default_learner_gains_from_it():
    """Quotes that come and go every 100 rows: the log loss is lower than without the expert."""
    full, reduced = AutoClassifier(), AutoClassifier()
    reduced._names = [name for name in reduced._engine.model.names if name != "groups"]
    reduced._engine = reduced._make_engine()
    losses = np.zeros(2)
    for t, (x, y) in enumerate(copies(2000, change=100)):
        for i, model in enumerate((full, reduced)):
            if t > 200:
                losses[i] -= math.log(model.predict_proba_one(x)[y])
            model.learn_one(x, y)
    assert losses[0] < 0.97 * losses[1]
