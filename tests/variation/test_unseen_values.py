"""Presence is of the column: a string that was never seen leaves its column present."""

from __future__ import annotations

import random
from typing import Any

import pytest

import varifold
from varifold import OVFIV, AutoClassifier, Block, Variation, evaluate

Pair = tuple[dict[str, Any], Any]


def always_new(n: int = 600) -> list[Pair]:
    """Instances whose column `note` is there for label 1 alone, each time with another text."""
    draw = random.Random(4)
    rows = []
    for i in range(n):
        y = draw.randrange(2)
        x: dict[str, Any] = {"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)}
        rows.append(({**x, "note": f"text {i}"} if y else x, y))
    return rows


def mixed(n: int = 400, seed: int = 0) -> list[Pair]:
    """Columns that come and go and hold numbers or strings, many of them new."""
    draw = random.Random(seed)
    rows = []
    for _ in range(n):
        x: dict[str, Any] = {}
        for name in "abcdef":
            if draw.random() < 0.6:
                x[name] = draw.gauss(0, 1) if draw.random() < 0.4 else f"level {draw.randrange(40)}"
        rows.append((x, "pqr"[(("a" in x) + 2 * ("b" in x)) % 3]))
    return rows


@pytest.mark.parametrize("make", [Variation, OVFIV, AutoClassifier])
def test_a_column_whose_strings_are_always_new_predicts_its_label(make: Any) -> None:
    learner, wrong = make(), 0
    for i, (x, y) in enumerate(always_new()):
        wrong += i >= 100 and learner.predict_one(x) != y
        learner.learn_one(x, y)
    assert wrong / 500 < 0.1


@pytest.mark.parametrize("make", [Variation, OVFIV])
def test_an_unseen_string_counts_as_a_seen_one_for_presence(make: Any) -> None:
    learner = make(base="pa") if make is OVFIV else make()
    for i, (x, y) in enumerate(always_new(300)):
        learner.learn_one({**x, "note": "uv"[i % 2]} if "note" in x else x, y)
    seen, unseen = ({"a": 0.5, "b": 0.5, "note": note} for note in ("u", "never seen"))
    absent = {"a": 0.5, "b": 0.5}
    if make is Variation:
        assert learner.predict_proba_one(unseen) == learner.predict_proba_one(seen)
    assert learner.predict_proba_one(unseen)[1] > 0.5 > learner.predict_proba_one(absent)[1]
    assert learner.predict_proba_one({**absent, "note": 3.0})[1] > 0.5, "a number in a column of strings"


@pytest.mark.parametrize("more", [{}, {"max_features": 12}, {"max_features": 12, "evict": "lightest"}])
@pytest.mark.parametrize("name", ["variation", "ovfiv", "auto", "ovfm", "gaussiannb"])
def test_dicts_and_blocks_predict_the_same(name: str, more: dict[str, Any]) -> None:
    rows = mixed()
    one, many, run = (varifold.models[name](**more) for _ in range(3))
    found = []
    for x, y in rows:
        found.append(one.predict_proba_one(x))
        one.learn_one(x, y)
    whole = Block.from_dicts([x for x, _ in rows], [y for _, y in rows])
    by_block = []
    for i in range(len(rows)):
        by_block += many.predict_proba_many(whole[i : i + 1])
        many.learn_many(whole[i : i + 1])
    assert by_block == found
    assert many.to_bytes() == one.to_bytes()
    evaluate.prequential(run, whole)
    assert run.to_bytes() == one.to_bytes()
    later = mixed(50, seed=1)
    wanted = [one.predict_proba_one(x) for x, _ in later]
    assert one.predict_proba_many([x for x, _ in later]) == wanted
    assert run.predict_proba_many(Block.from_dicts([x for x, _ in later])) == wanted
    loaded = varifold.from_bytes(one.to_bytes())
    assert [loaded.predict_proba_one(x) for x, _ in later] == wanted
