"""Pairs are ordered by slot in whatever order they come: sums have one order, and the state shows no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import varifold

SPACES = [3, 9, 63, 64, 65, 500, 2047, 2049, 16_383, 16_384, 30_000]  # the ways of ordering change in between


def rows_of(space: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Every name once, then rows of all lengths; values differ by many powers of ten, so that sums show their order."""
    names = [f"f{j}" for j in rng.permutation(space)]
    rows = [dict.fromkeys(names[lo : lo + 1000], 1.0) for lo in range(0, space, 1000)]
    for n in (1, 2, 7, 8, 9, 40, 300):
        for _ in range(4):
            chosen = rng.choice(space, size=min(n, space), replace=False)
            rows.append({names[j]: float(10.0 ** rng.integers(-9, 9) * rng.normal()) for j in chosen})
    return rows


def shuffled(x: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    return {name: x[name] for name in rng.permutation(list(x)).tolist()}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_neither_key_order_nor_api_shows_in_the_state(space: int, scale: str) -> None:
    rng = np.random.default_rng(space)
    rows = rows_of(space, rng)
    y = [bool(v) for v in rng.random(len(rows)) < 0.5]
    given, mixed, ascending, block = (varifold.PA(scale=scale) for _ in range(4))
    names = sorted(rows[0] | {k: 0.0 for x in rows for k in x})
    for x, label in zip(rows, y, strict=True):
        given.learn_one(x, label)
        mixed.learn_one(shuffled(x, rng), label)
        ascending.learn_one({name: x[name] for name in names if name in x}, label)
    block.learn_many(varifold.to_block([shuffled(x, rng) for x in rows], y))
    for other in (mixed, ascending, block):
        assert given.to_bytes() == other.to_bytes()


def test_names_that_the_last_dict_had_at_the_same_place_are_found() -> None:
    """A dict often has the keys of the one before it; whatever it has instead, each value goes to its own name."""
    streams: list[list[dict[Any, Any]]] = [
        [{"a": 1.0, "b": 2.0, "c": 3.0}] * 3,
        [{"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}, {"a": 5.0, "c": 1.0, "b": 2.0}],
        [{"a": 1.0, "b": 2.0}, {"a": 1.0, "".join(["b"]): 4.0}, {"a": 1.0, 1: 4.0}, {"a": 1.0, "1": 4.0}],
        [{"a": 1.0, "b": None, "c": 2.0}, {"a": 1.0, "b": 7.0, "c": 2.0}, {"a": "text", "b": 7.0, "c": 2.0}],
        [{"a": 1.0, "b": 3.0}, {}, {"b": 1.0}, {"new": 1.0, "b": 1.0}, {"b": 1.0, "new": 2.0}],
    ]
    for rows in streams:
        read, loaded = varifold.OLVF(), varifold.OLVF()
        for i, x in enumerate(rows):
            read.predict_one(x)
            read.learn_one(x, i % 2)
            loaded = varifold.from_bytes(loaded.to_bytes())  # remembers no dict
            loaded.learn_one(x, i % 2)
        assert read.to_bytes() == loaded.to_bytes()


def test_a_name_that_was_evicted_is_not_found_where_it_was() -> None:
    bounded = varifold.OLVF(max_features=4)
    rows = [{f"f{i + j}": 1.0 + j for j in range(3)} for i in range(30)]
    for i, x in enumerate(rows):
        bounded.learn_one(x, i % 2)
        bounded.predict_one(rows[max(0, i - 2)])
    again = varifold.OLVF(max_features=4)
    for i, x in enumerate(rows):
        again.learn_one(x, i % 2)
    assert bounded.to_bytes() == again.to_bytes()


def test_a_dict_that_changed_between_predict_and_learn_is_read_again() -> None:
    changed, fresh = varifold.OLVF(), varifold.OLVF()
    for i in range(6):
        x = {"a": float(i), "b": 2.0, "c": 3.0}
        changed.predict_one(x)
        x["b"] = -float(i)
        x["d"] = x.pop("a")
        changed.learn_one(x, i % 2)
        fresh.learn_one(dict(x), i % 2)
    assert changed.to_bytes() == fresh.to_bytes()
