"""A block finds its features where they are, whatever the other API evicted in between."""

from __future__ import annotations

import random

import pytest

import varifold
from varifold import AROW
from varifold.checks.material import state
from varifold.errors import FeatureNameError


def test_apis_in_turn_through_evictions() -> None:
    rng = random.Random(2)
    rows = [({f"f{rng.randrange(40)}": rng.gauss(0, 1) for _ in range(5)}, rng.choice("ab")) for _ in range(600)]
    mixed, dicts = varifold.AROW(max_features=12), varifold.AROW(max_features=12)
    block = varifold.Block.from_dicts([x for x, _ in rows], [y for _, y in rows])
    other = varifold.Block.from_dicts([x for x, _ in rows], [y for _, y in rows])
    at = 0
    while at < len(rows):
        step = rng.randrange(1, 9)
        piece, api = slice(at, at + step), rng.randrange(3)
        if api == 0:
            for x, y in rows[piece]:
                mixed.learn_one(x, y)
        else:
            mixed.learn_many((block if api == 1 else other)[piece])
        at += step
    for x, y in rows:
        dicts.learn_one(x, y)
    assert mixed.to_bytes() == dicts.to_bytes()


def test_values_of_a_column_named_by_an_int_are_not_those_of_a_str() -> None:
    """Both are called "1=x"; either API rejects the second column, and the learner stays as it was."""
    for first, second in ((1, "1"), ("1", 1)):
        learner = AROW()
        learner.learn_one({first: "x", "a": 1.0}, "p")
        before = state(learner)
        with pytest.raises(FeatureNameError, match="1=x"):
            learner.learn_one({second: "x"}, "q")
        with pytest.raises(FeatureNameError, match="1=x"):
            learner.learn_many([{"a": 2.0}, {second: "x"}], ["p", "q"])
        assert state(learner) == before


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax"])
def test_a_new_feature_does_not_inherit_the_statistics_of_an_evicted_one(scale: str) -> None:
    evicting, fresh = (AROW(max_features=1, scale=scale) for _ in range(2))
    for step in range(8):
        evicting.learn_one({"a": 1000.0 + step}, "pq"[step % 2])
    for step in range(8):
        for learner in (evicting, fresh):
            learner.learn_one({"b": float(step)}, "pq"[step % 2])
    tables = [learner._engine.dump()[2]["scaler"][learner._engine.space.id_of("b")] for learner in (evicting, fresh)]
    assert tables[0].tolist()[:13] == tables[1].tolist()[:13]  # the last number is a step


def test_a_slot_that_a_dict_took_over_unbinds_no_other_name() -> None:
    """The slot of "a" goes to "b", which no block names; evicting "b" must not hide "a", then in another slot."""
    vocabulary = varifold.Vocabulary()
    mixed, dicts = varifold.AROW(max_features=2), varifold.AROW(max_features=2)
    before, after = [{"a": 1.0}, {"c": 1.0}], [{"a": 2.0}, {"d": 1.0}, {"a": 3.0}]
    mixed.learn_many(varifold.to_block(before, [0, 1], vocabulary=vocabulary))
    mixed.learn_one({"b": 1.0}, 0)
    mixed.learn_many(varifold.to_block(after, [0, 1, 0], vocabulary=vocabulary))
    for x, y in zip([*before, {"b": 1.0}, *after], [0, 1, 0, 0, 1, 0], strict=True):
        dicts.learn_one(x, y)
    assert state(mixed) == state(dicts)
    assert mixed.features["a"].count == 2
