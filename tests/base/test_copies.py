"""Copies, pickles and files continue as the original does, long after and over columns of mixed types."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import varifold
from varifold.base.saving import capture
from varifold.checks.material import is_regressor

WAYS: list[Callable[[Any], Any]] = [
    copy.deepcopy,
    lambda model: pickle.loads(pickle.dumps(model)),
    lambda model: varifold.from_bytes(model.to_bytes()),
]


def mixed(count: int, seed: int) -> Iterator[tuple[dict[str, Any], float]]:
    """Text columns that now and then hold a number, a number that is now and then a text, absences, late levels."""
    rng = random.Random(seed)
    for step in range(count):
        x: dict[str, Any] = {}
        for column in ("a", "b", "c"):
            if rng.random() < 0.85:
                levels = ["red", "green", "blue", *[f"x{i}" for i in range(min(8, step // 20))]]
                x[column] = rng.choice([0, 1, 2.5, rng.gauss(0, 3)]) if rng.random() < 0.02 else rng.choice(levels)
        if rng.random() < 0.7:
            x["n"] = "high" if rng.random() < 0.02 else rng.gauss(0, 1)
        y = sum(float(len(value)) if isinstance(value, str) else value for value in x.values())
        yield x, y + rng.gauss(0, 0.5)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", varifold.models)
def test_copies_continue_to_the_bit(name: str, seed: int) -> None:
    model: Any = varifold.models[name]()
    numeric = is_regressor(model)
    copies: list[Any] = []
    for step, (x, y) in enumerate(mixed(240, seed)):
        if step in (20, 45 + 5 * seed, 90):
            copies.extend(way(model) for way in WAYS[: 1 if copies else 3])
        target = y if numeric else "low" if y < 10 else "high" if y > 14 else "middle"
        predicted = model.predict_one(x) if numeric else model.predict_proba_one(x)
        for twin in copies:
            assert (twin.predict_one(x) if numeric else twin.predict_proba_one(x)) == predicted, step
            twin.learn_one(x, target)
        model.learn_one(x, target)
    assert {twin.to_bytes() for twin in copies} == {model.to_bytes()}


@pytest.mark.parametrize("name", [*varifold.models, *varifold.detectors])
def test_a_captured_state_stays_when_the_learner_goes_on(name: str) -> None:
    detects = name in varifold.detectors
    model: Any = (varifold.detectors if detects else varifold.models)[name]()

    def learn(seed: int) -> None:
        for x, y in mixed(120, seed):
            if detects:
                model.learn_one(x)
            else:
                model.learn_one(x, y if is_regressor(model) else y < 12)

    learn(0)
    then = model.to_bytes()
    encode = capture(model)
    learn(1)
    assert encode() == then != model.to_bytes()
