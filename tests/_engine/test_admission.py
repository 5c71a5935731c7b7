"""Bounded memory: which names wait, which are evicted, and that both APIs and files agree."""

from __future__ import annotations

import random

import pytest

import varifold
from varifold import AROW, OLVF
from varifold.checks.material import state
from varifold.errors import FeatureNameError

LIMIT = 1024


def mails(n: int = 500, seed: int = 0):
    """Generate instances with words that come some six times while the vocabulary moves on, and one that comes once."""
    rng = random.Random(seed)
    for step in range(n):
        words = {f"w{4 * step + rng.randrange(600)}": 1.0 for _ in range(25)}
        words[f"once{step}"] = 1.0
        yield words, rng.random() < 0.5


def in_use(model) -> set[str]:
    return set(model.features)


def test_a_rare_name_waits_while_there_is_no_slot_left():
    model = AROW(max_features=LIMIT)
    for step in range(LIMIT):
        model.learn_one({f"f{step}": 1.0}, step % 2)
    before = in_use(model)
    for _ in range(3):
        model.learn_one({"late": 1.0}, 0)
        assert in_use(model) == before, "it came too seldom to evict another"
    model.learn_one({"late": 1.0}, 0)
    assert "late" in in_use(model)
    assert len(in_use(model)) == LIMIT - LIMIT // 16 + 1
    assert "f0" not in in_use(model)
    assert f"f{LIMIT - 1}" in in_use(model)


def test_no_name_waits_while_slots_are_left_or_the_limit_is_small():
    model = AROW(max_features=LIMIT)
    model.learn_one({f"f{j}": 1.0 for j in range(LIMIT)}, 0)
    assert len(in_use(model)) == LIMIT
    small = AROW(max_features=100)
    small.learn_one({f"f{j}": 1.0 for j in range(100)}, 0)
    small.learn_one({"late": 1.0}, 1)
    assert "late" in in_use(small)


def test_ints_and_texts_wait_apart():
    model = AROW(max_features=LIMIT)
    model.learn_one({f"f{j}": 1.0 for j in range(LIMIT)}, 0)
    for _ in range(3):
        model.learn_one({1: 1.0, "1": 1.0}, 0)
    model.learn_one({1: 1.0}, 0)
    assert 1 in in_use(model)
    assert "1" not in in_use(model)


@pytest.mark.parametrize("evict", ["oldest", "lightest"])
@pytest.mark.parametrize("name", ["arow", "olvf", "nb3", "neighbours", "windowforest"])
def test_both_apis_and_files_agree(name, evict):
    pairs = list(mails())
    one, many = (varifold.models[name](max_features=LIMIT, evict=evict) for _ in range(2))
    for x, y in pairs:
        one.learn_one(x, y)
    assert one._engine.space.evictions > 0
    many.learn_many([x for x, _ in pairs[:250]], [y for _, y in pairs[:250]])
    many = varifold.from_bytes(many.to_bytes())
    many.learn_many([x for x, _ in pairs[250:]], [y for _, y in pairs[250:]])
    assert many.to_bytes() == one.to_bytes()
    assert len(one.features) <= LIMIT


def test_few_features_are_evicted_on_words():
    model = OLVF(max_features=LIMIT)
    for x, y in mails(800):
        model.learn_one(x, y)
    assert 0 < model._engine.space.evictions < 6 * 800


def test_merged_learners_keep_their_limit():
    pairs = list(mails(400))
    halves = []
    for part in (pairs[:200], pairs[200:]):
        model = AROW(max_features=LIMIT)
        model.learn_many([x for x, _ in part], [y for _, y in part])
        halves.append(model)
    merged = varifold.merge(halves)
    assert len(merged.features) <= LIMIT
    assert varifold.from_bytes(merged.to_bytes()).to_bytes() == merged.to_bytes()


@pytest.mark.parametrize("limit", [2**40, 2**62 + 1, 2**63 - 1])
def test_a_huge_limit_costs_nothing(limit: int):
    """The table of names that wait does not grow with a limit that no stream reaches."""
    model = AROW(max_features=limit)
    model.learn_one({"a": 1.0}, 0)
    data = model.to_bytes()
    assert len(data) < 5_000_000
    assert varifold.from_bytes(data).to_bytes() == data


@pytest.mark.parametrize("many", [False, True])
def test_no_feature_of_the_instance_at_hand_is_evicted_for_another(many: bool) -> None:
    model = AROW(max_features=2)
    for x in ({"a": 1.0}, {"b": 1.0}, {"a": 2.0, "c": 1.0}):  # a is the oldest
        model.learn_many([x], [0]) if many else model.learn_one(x, 0)
    assert in_use(model) == {"a", "c"}
    assert model.features["a"].count == 2


def test_the_expected_error_of_an_evicted_feature_is_forgotten() -> None:
    model = AROW(max_features=2, coverages=(0.9,))
    for step in range(60):
        model.learn_one({"a": step % 5, "b": step % 3}, step % 2)
    slot = model._engine.space.id_of("b")
    for step in range(3):
        model.learn_one({"a": step % 5, "c": 1.0}, step % 2)
    assert model._engine.space.id_of("c") == slot
    assert model._engine.dump()[2]["conformal.evidence.count"][slot] == 3.0


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("x", [{"a": "x", "a=x": "y"}, {"a=x": "y", "a": "x"}, {"a": "x", "a=x": 1.0}])
def test_a_column_named_like_a_value_of_the_same_instance_is_rejected(x: dict[str, object], many: bool) -> None:
    model = AROW()
    with pytest.raises(FeatureNameError, match=r"'a=x(=y)?' at step 1 is both a feature and the indicator"):
        model.learn_many([x], [0]) if many else model.learn_one(x, 0)
    assert (model.steps, in_use(model)) == (0, set())


@pytest.mark.parametrize("name", ["auto", "autoregressor", "additive", "ovfiv"])
def test_dense_rows_with_new_names_leave_the_state_of_dicts(name: str) -> None:
    """Such rows are ordered by marks, with the values of unknown names in the place of the intercept."""
    rows = [{f"f{j}": float(i + j) for j in range(40)} for i in range(12)]
    for i, x in enumerate(rows[2:]):
        x[f"new {i}"] = 7.0
    one, many = varifold.models[name](), varifold.models[name]()
    targets = [float(i % 3) for i in range(len(rows))]
    for x, y in zip(rows, targets, strict=True):
        one.learn_one(x, y)
    many.learn_many(rows, targets)
    assert state(one) == state(many)
    assert one.predict_one({**rows[5], "unknown": 9.0}) == many.predict_many([{**rows[5], "unknown": 9.0}])[0]


@pytest.mark.parametrize("many", [False, True])
def test_a_number_is_not_seen_where_its_column_holds_a_text(many: bool) -> None:
    model = AROW()
    for x in ({"k": 1.0}, {"k": "x"}, {"k": "x"}):
        model.learn_many([x], [0]) if many else model.learn_one(x, 0)
    number = model.features["k"]
    assert (number.first_seen, number.last_seen, number.count) == (1, 1, 1)
    assert model.features["k=x"].count == 2
