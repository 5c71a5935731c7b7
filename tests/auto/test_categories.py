"""String columns with many levels: what replaces them, limits that count columns, both APIs, files, eviction."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.categories import Levels
from varifold import AutoClassifier
from varifold.auto._categories import CategoriesModel
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import Expert, classifier_experts
from varifold.base import Block, Labels, Vocabulary
from varifold.linear._arow import AROWRule


def cities(count, levels=60, seed=1, columns=("city",), skewed=False):
    """Numbers and wide columns; the label follows a number and the level's parity."""
    rng = random.Random(seed)
    for _ in range(count):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
        for column in columns:
            level = int(levels * rng.random() ** (4 if skewed else 1))
            x[column] = f"{column[0]}{level}"
        odd = level % 2
        yield x, "yes" if x["a"] + 2 * odd - 1 + rng.gauss(0, 0.5) > 0 else "no"


def both_labels(rows):
    """The rows, after one of each label, so that both are known from the start and in this order."""
    return [({"a": 0.0, "city": "c0"}, "no"), ({"a": 0.0, "city": "c1"}, "yes"), *rows]


@pytest.mark.parametrize("skewed", [False, True])
def test_as_an_expert_it_adds_up_the_lifts_of_an_instances_levels(skewed):
    engine, twin, counts = class_engine(CategoriesModel(10.0), scale="none"), Levels(["no", "yes"]), [0, 0]
    wide = 0
    for t, (x, y) in enumerate(both_labels(cities(400, skewed=skewed))):
        if t >= 2:
            wide += twin.is_wide()
            lifts = twin.lifts(x["city"]) if twin.is_wide() else None
            odds = np.log(np.array(counts) + 0.5) + (lifts or 0.0)
            expected = np.exp(odds - odds.max())
            predicted = engine.predict_proba_one(x)
            assert [predicted["no"], predicted["yes"]] == pytest.approx((expected / expected.sum()).tolist(), abs=1e-12)
        engine.learn_one(x, y)
        twin.learn(x["city"], ["no", "yes"].index(y))
        counts[["no", "yes"].index(y)] += 1
    assert wide > 200


def pool(sees):
    line = Expert(name="line", model=lambda: AROWRule(10.0), sees=sees, stack_weight=1.0)
    categories = Expert(name="categories", model=lambda: CategoriesModel(10.0), stack_variance=0.5)
    return class_engine(ClassificationMixture([line, categories]), scale="none")


def weights(engine, expert=""):
    """Return the numbers of a linear model by feature."""
    names, _, arrays = engine.dump()
    state = arrays[f"model.{expert}state"]
    return {name: state[slot].ravel().tolist() for slot, name in enumerate(names) if state[slot].any()}


def test_an_expert_sees_frequent_levels_and_one_number_for_the_others():
    """The line in the pool learns what a line alone learns from levels that the oracle has replaced."""
    engine, alone, twin = pool("bounded"), class_engine(AROWRule(10.0), scale="none"), Levels(["no", "yes"])
    shown = replaced = 0
    for x, y in both_labels(cities(600, levels=50, skewed=True)):
        level, seen = x["city"], dict(x)
        if twin.is_wide() and not twin.is_frequent(level):
            seen.pop("city")
            if level in twin.counts:
                seen["rest"] = twin.value(level)
                replaced += 1
        elif twin.is_wide():
            shown += 1
        engine.learn_one(x, y)
        alone.learn_one(seen, y)
        twin.learn(level, ["no", "yes"].index(y))
    assert shown > 100
    assert replaced > 100
    learned, expected = weights(engine, "0."), weights(alone)
    expected["city"] = expected.pop("rest")
    assert learned.keys() == expected.keys()
    for name, numbers in learned.items():
        assert numbers == pytest.approx(expected[name], abs=1e-9), name


def test_an_expert_that_sees_everything_learns_every_level():
    engine, alone = pool("everything"), class_engine(AROWRule(10.0), scale="none")
    for x, y in both_labels(cities(300)):
        engine.learn_one(x, y)
        alone.learn_one(x, y)
    assert weights(engine, "0.") == weights(alone)


def test_narrow_columns_are_seen_as_they_are():
    engine, alone = pool("bounded"), class_engine(AROWRule(10.0), scale="none")
    for x, y in cities(300, levels=32):
        engine.learn_one(x, y)
        alone.learn_one(x, y)
    assert weights(engine, "0.") == weights(alone)


def test_limits_count_columns_and_not_levels():
    model = AutoClassifier()
    for x, y in cities(2_600, levels=1_000, columns=("city", "zone", "made")):
        model.learn_one(x, y)
    assert len(model.features) > 2_048
    report = model.report()
    assert sorted(report.wide_columns) == ["city", "made", "zone"]
    assert [name for name, state in report.states.items() if state.status == "disabled"] == []
    assert not [note for note in report.notes if "disabled" in note or "not looked at" in note]


def test_columns_beyond_the_limit_disable_experts_and_their_weight_is_0():
    model = AutoClassifier()
    rng = random.Random(2)
    for _ in range(60):
        x = {f"f{rng.randrange(1_400)}": rng.gauss(0, 1) for _ in range(60)}
        model.learn_one(x, rng.random() < 0.5)
    assert len(model.features) > 1_024
    report = model.report()
    state = report.states["latent"]
    assert (state.status, state.limit, state.weight) == ("disabled", 1_024, 0.0)
    assert state.reason == "there are more than 1,024 columns"
    assert report.experts["latent"] == 0.0
    assert math.isclose(sum(report.experts.values()), 1.0)
    assert report.states["presence"].sees == "columns"
    assert report.states["categories"].reason == "no column has many levels"
    steps, history = report.history_steps, report.history_weights
    at = list(report.experts).index("latent")
    assert history[steps < 15, at].all()
    assert not history[-1, at]


@pytest.mark.parametrize("budget", ["fast", "balanced"])
@pytest.mark.parametrize("most", [None, 40])
def test_both_doors_and_files_leave_the_same_bits(budget, most):
    rows, y = zip(*cities(400, levels=90, columns=("city", "zone")), strict=True)
    one, many = (AutoClassifier(budget, max_features=most) for _ in range(2))
    for x, label in zip(rows, y, strict=True):
        one.predict_proba_one(x)
        one.learn_one(x, label)
    many.learn_many(rows, y)
    assert one.to_bytes() == many.to_bytes()
    again = AutoClassifier.from_bytes(one.to_bytes())
    assert again.to_bytes() == one.to_bytes()
    more, labels = zip(*cities(150, levels=120, seed=9, columns=("city", "zone")), strict=True)
    assert again.predict_learn_many(more, labels) == one.predict_learn_many(more, labels)
    assert again.to_bytes() == one.to_bytes()


def test_rows_of_a_block_may_hold_many_levels_of_one_column():
    """Only blocks built by hand have such rows; the column then counts once, with the first of its rare levels."""
    vocabulary = Vocabulary()
    levels = [vocabulary.add_level("city", f"c{i}") for i in range(120)]
    rows = [[level] for level in levels] + [levels] * 40
    ends = np.cumsum([0, *[len(row) for row in rows]])
    flat = [level for row in rows for level in row]
    codes = [i % 2 for i in range(len(rows))]
    block = Block(vocabulary, ends, flat, [1.0] * len(flat), codes=codes, labels=Labels(["no", "yes"]))
    model = AutoClassifier()
    model.learn_many(block)
    assert model.report().wide_columns == ("city",)
    assert AutoClassifier.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    assert sum(model.predict_proba_one({"city": "c3"}).values()) == pytest.approx(1.0)


def test_a_column_whose_levels_are_evicted_is_no_longer_wide():
    model = AutoClassifier("fast", max_features=60)
    for x, y in cities(300, levels=55):
        model.learn_one(x, y)
    assert model.report().wide_columns == ("city",)
    rng = random.Random(4)
    for step in range(300):
        model.learn_one({f"n{step % 58}": rng.gauss(0, 1)}, "yes" if step % 2 else "no")
    assert model.report().wide_columns == ()
    assert AutoClassifier.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_the_contributions_of_an_instance_with_a_rare_level_add_up():
    model = AutoClassifier()
    for x, y in cities(400, levels=200):
        model.learn_one(x, y)
    x = {"a": 0.3, "b": -0.2, "city": "c7"}
    predicted = model.predict_proba_one(x)
    parts = {label: sum(model.explain_one(x, label).values()) for label in predicted}
    assert parts["yes"] - parts["no"] == pytest.approx(math.log(predicted["yes"] / predicted["no"]), abs=1e-9)
    assert model.explain_one(x)["city=c7"] != 0.0


def test_a_column_of_many_levels_that_say_nothing_costs_little():
    """The log loss with the column stays near that without it, and nearer than if every expert saw every level."""
    rng = random.Random(11)
    rows = [{f"f{i}": rng.gauss(0, 1) for i in range(6)} for _ in range(2_000)]
    y = [x["f0"] + x["f1"] + rng.gauss(0, 1) > 0 for x in rows]
    noisy = [{**x, "city": f"c{rng.randrange(600)}"} for x in rows]
    every_level = [
        replace(expert, sees="columns" if expert.sees == "columns" else "everything")
        for expert in classifier_experts("balanced")
        if expert.name != "categories"
    ]
    without, bounded, unbounded = (
        loss(ClassificationMixture(experts), r, y)
        for experts, r in (
            (classifier_experts("balanced"), rows),
            (classifier_experts("balanced"), noisy),
            (every_level, noisy),
        )
    )
    assert bounded - without < 0.6 * (unbounded - without)


def loss(mixture, rows, labels):
    model, total = class_engine(mixture, scale="robust"), 0.0
    for x, y in zip(rows, labels, strict=True):
        total -= math.log(model.predict_proba_one(x).get(y, 0.5))
        model.learn_one(x, y)
    return total / len(rows)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("slots", lambda a: a + 10_000),
        ("counts", lambda a: a[:, :1]),
        ("mean_square", lambda a: -1.0 - a),
        ("slots", lambda a: a * 0),
    ],
)
def test_impossible_files_are_rejected(key, change):
    model = AutoClassifier("fast")
    for x, y in cities(200, levels=90):
        model.learn_one(x, y)
    names, labels, arrays = model._engine.dump()
    name = f"model.6.{key}"
    assert len(arrays[name])
    with pytest.raises(ValueError, match=key):
        AutoClassifier("fast")._engine.fill(names, labels, {**arrays, name: change(arrays[name])})


def test_features_that_vanish_while_no_label_comes_are_found_in_what_was_predicted():
    model = AutoClassifier("fast")
    for x, y in cities(200, levels=5):
        model.learn_one(x, y)
    before = model.to_bytes()
    assert model.report().changes == ()
    predicted = [{"a": 0.1, "city": "c1"}] * 60
    steps = {(change.what, change.feature): change.step for change in model.report(predicted=predicted).changes}
    assert steps[("vanished", "b")] == 200
    assert ("vanished", "a") not in steps
    assert ("vanished", "b") not in {(c.what, c.feature) for c in model.report(predicted=predicted[:40]).changes}
    assert model.to_bytes() == before
