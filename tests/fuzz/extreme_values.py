"""Instances that nobody would send on purpose, from a seed; and one episode of a learner's life among them."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import varifold
from varifold._engine.names.vocabulary import Labels
from varifold.checks.material import arrays, is_regressor, state
from varifold.errors import VarifoldError

NAMES: list[Any] = [
    *(f"f{j}" for j in range(12)), *range(-2, 6), "", " ", "a=b", "a", "b", "a=b=c", "=", "colour", "colour=red",
    "größe", "測\u0301", "\ud800", "x" * 300, "1", 10**25, np.str_("f1"), np.int64(3), np.uint8(200),
]  # fmt: skip
BAD_NAMES: list[Any] = [True, 1.5, None, ("a",), b"f1", math.nan, np.bool_(True), np.float64(2), frozenset()]
NUMBERS: list[Any] = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1e308, -1e308, 1.7e308, 1e150, -1e151, 5e-324, 1e-310, -1e-200, 1e16, 3, -7, 2**70,
    True, False, np.float32(0.1), np.float16(6e4), np.int8(-128), np.uint64(2**63), np.bool_(True),
    np.longdouble("1e400") * 0, decimal.Decimal("0.1"), decimal.Decimal("-1e300"), decimal.Decimal("1e-400"),
]  # fmt: skip
ABSENT: list[Any] = [
    None, math.nan, np.float32("nan"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"), np.datetime64("NaT", "s")
]  # fmt: skip
LEVELS: list[Any] = ["red", "b", "b=c", "", "=", "\udfff", "1", np.str_("red"), "c" * 200]
BAD_VALUES: list[Any] = [
    math.inf, -math.inf, np.float32("inf"), decimal.Decimal("Infinity"), 10**400, b"red", [], {}, (), object(), 1j,
    np.complex128(1), np.datetime64("2020-01-01"), np.array([1.0]), np.bytes_(b"x"), print,
]  # fmt: skip
LABELS: list[Any] = ["no", "yes", 0, 1, True, 1.0, np.int64(0), np.str_("no"), ("t", 1), b"y", "maybe"]
BAD_LABELS: list[Any] = [None, math.nan, [], {}, np.float64("nan"), {1}]
TARGETS: list[Any] = [
    0.0, -0.0, 1, 3.5, -2.0, 1e308, -1e308, 1e150, 5e-324, 1e16, True, np.float32(0.1), np.int64(7), 2**70,
    decimal.Decimal("0.1"),
]  # fmt: skip
BAD_TARGETS: list[Any] = [None, math.nan, math.inf, -math.inf, "3", b"1", [], {}, np.float64("nan"), 10**400]
BAD_WEIGHTS: list[Any] = [-1.0, math.nan, math.inf, -math.inf]


def instance(rng: random.Random) -> dict[Any, Any]:
    x: dict[Any, Any] = {}
    for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 20))):
        roll = rng.random()
        name = rng.choice(NAMES) if roll < 0.97 else rng.choice(BAD_NAMES) if roll < 0.972 else f"new {rng.random()}"
        roll = rng.random()
        if roll < 0.5:
            x[name] = rng.gauss(0, 1)
        elif roll < 0.8:
            x[name] = rng.choice(NUMBERS)
        elif roll < 0.9:
            x[name] = rng.choice(LEVELS)
        else:
            x[name] = rng.choice(ABSENT) if roll < 0.99 else rng.choice(BAD_VALUES)
    return x


def labelled(rng: random.Random, labels: int, numeric: bool = False) -> tuple[dict[Any, Any], Any, float]:
    """An instance with one of the first labels, or with a number."""
    good, bad = (TARGETS, BAD_TARGETS) if numeric else (LABELS[:labels], BAD_LABELS)
    y = rng.choice(good) if rng.random() < 0.99 else rng.choice(bad)
    if numeric and rng.random() < 0.5:
        y = rng.gauss(0, 1)
    w = 1.0 if rng.random() < 0.8 else rng.choice([0.0, 0.5, 1e-12, 1e-16, 1e-100, 5e-324, 1e12, 7, np.float64(2)])
    return instance(rng), y, rng.choice(BAD_WEIGHTS) if rng.random() < 0.01 else w


def accepted(call: Callable[..., Any], *given: Any) -> bool:
    """Whether the call went through; the library may reject in its own words and in no others."""
    try:
        call(*given)
    except VarifoldError:
        return False
    return True


def assert_whole(learner: Any) -> None:
    for name, array in (arrays(learner) or {}).items():
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), f"{name} holds NaN or infinity"


def assert_predictions(learner: Any, x: dict[Any, Any]) -> None:
    try:
        label, parts = learner.predict_one(x), learner.explain_one(x)
        proba = {} if is_regressor(learner) else learner.predict_proba_one(x)
    except VarifoldError:
        return
    if is_regressor(learner):
        assert math.isfinite(label)
        assert all(math.isfinite(part) for part in parts.values()), parts
        return
    assert (label is None) == (not proba)
    if proba:
        assert label in proba
        assert all(0.0 <= p <= 1.0 for p in proba.values()), proba
        assert math.isclose(sum(proba.values()), 1.0, rel_tol=1e-9)
        assert all(math.isfinite(part) for part in parts.values()), parts


def second_api(learner: Any, rows: list[tuple[dict[Any, Any], Any, float]], rng: random.Random) -> None:
    """Learn what the first API took through the second, in pieces; a piece whose names clash goes one by one."""
    start = 0
    while start < len(rows):
        size = rng.choice((1, 7, 50, 200))
        piece = rows[start : start + size]
        start += size
        before = state(learner)
        try:
            learner.learn_many([x for x, _, _ in piece], [y for _, y, _ in piece], [w for _, _, w in piece])
        except VarifoldError:
            assert state(learner) == before, "a rejected block changed the state"
            for row in piece:
                learner.learn_one(*row)


def episode(learner: Any, seed: int, length: int) -> None:
    """A life of `length` hostile instances; afterwards both APIs agree and every number is finite."""
    rng = random.Random(seed)
    labels = rng.choice((1, 2, 2, 5, len(LABELS)))
    fresh, taken = learner.clone(), []
    for t in range(length):
        row = labelled(rng, labels, is_regressor(learner))
        if t % 3 == 0:
            assert_predictions(learner, row[0])
        if accepted(learner.learn_one, *row):
            taken.append(row)
    assert_whole(learner)
    type(learner).from_bytes(learner.to_bytes())  # what can learn can be saved
    assert len(learner.features) <= (learner.max_features or math.inf)
    second_api(fresh, taken, rng)
    assert state(fresh) == state(learner), "the two APIs, or a rejected instance, led to other states"


COLUMNS = [f"c{j}" for j in range(40)]
KINDS = {"colour": ["red", "b", "", "=", "1"], "größe": ["s", "m", "l=x"], "9": ["\udfff", "y"]}
PLAIN = [float(v) for v in NUMBERS if abs(float(v)) <= 1e150] + [1e150, -1e150]
WEIGHTS = [1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 0.0, 1e-12, 1e-16, 1e-100, 1e12]


def hostile_block(rng: np.random.Generator, rows: int, labels: int) -> varifold.Block:
    """Rows of columns that come and go, numbers of every size among them, string values and odd weights."""
    vocabulary = varifold.Vocabulary()
    ids = [vocabulary.add(name) for name in COLUMNS]
    levels = [[vocabulary.add_level(column, level) for level in found] for column, found in KINDS.items()]
    known = rng.integers(1, len(ids) + 1, size=rows)[:, None] > rng.permutation(len(ids))
    there = known & (rng.random((rows, len(ids))) < rng.choice([0.02, 0.3, 0.9], size=(rows, 1)))
    values = np.where(rng.random(there.shape) < 0.6, rng.normal(size=there.shape), rng.choice(PLAIN, size=there.shape))
    chosen = np.stack([rng.choice([0, *found], size=rows) for found in levels], axis=1)
    cells = np.concatenate([np.where(there, np.array(ids), 0), chosen], axis=1)
    numbers = np.concatenate([values, np.ones(chosen.shape)], axis=1)
    ends = np.concatenate([[0], np.cumsum((cells > 0).sum(axis=1))])
    names = Labels(LABELS[:labels])
    codes = rng.integers(0, len(names), size=rows)
    return varifold.Block(
        vocabulary, ends, cells[cells > 0], numbers[cells > 0], codes, names, rng.choice(WEIGHTS, size=rows)
    )


def assert_probabilities(codes: np.ndarray, probabilities: np.ndarray) -> None:
    predicted = probabilities[codes >= 0]
    assert ((predicted >= 0.0) & (predicted <= 1.0)).all(), "probabilities outside 0 to 1"
    assert np.allclose(predicted.sum(axis=1), 1.0, rtol=1e-9), "probabilities that do not sum to 1"


def block_episode(learner: Any, seed: int, length: int, compare: bool) -> None:
    """A life of `length` hostile instances through the second API, compared with the first on request."""
    rng = np.random.default_rng(seed)
    labels = int(rng.choice((1, 2, 2, 5)))
    twin = learner.clone()
    for _ in range(4):
        block = hostile_block(rng, length // 4, labels)
        if is_regressor(learner):
            size = len(block)
            block = block.with_targets(np.where(rng.random(size) < 0.7, rng.normal(size=size), rng.choice(PLAIN, size)))
            assert np.isfinite(learner.run_block(block)).all(), "a prediction that is no finite number"
        else:
            assert_probabilities(*learner.run_block(block))
        assert_whole(learner)
        type(learner).from_bytes(learner.to_bytes())
        if compare:
            for x, y, w in zip(block.rows(), block.y, block.weights, strict=True):
                twin.learn_one(x, y, float(w))
            assert state(twin) == state(learner), "the two APIs led to other states"
