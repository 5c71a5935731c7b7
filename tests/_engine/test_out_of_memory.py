"""Every allocation fails once: the learner is as it was, goes on, and ends where one ends that never failed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import varifold
from varifold._numeric.memory import fail_at
from varifold.checks.material import is_regressor
from varifold.errors import OutOfMemoryError

Instance = tuple[dict[Any, Any], Any]


def forms() -> list[Any]:
    found = []
    for name, cls in varifold.models.items():
        params = list(cls._unit_test_params()) if hasattr(cls, "_unit_test_params") else [{}]
        for i, given in enumerate([{}, *[p for p in params if p]]):
            found.append(pytest.param(cls, given, id=f"{name}-{i}"))
    return found


def instances(count: int, seed: int, numeric: bool = False) -> list[Instance]:
    """Numbers and strings whose names and labels (or numbers) grow: a few at a time, then many at once."""
    rng = random.Random(seed)
    found = []
    for step in range(count):
        names = 6 + 3 * step if step % 7 else 40 + 8 * step
        y = f"y{rng.randrange(1 + step // 3)}"
        x: dict[Any, Any] = {f"n{rng.randrange(names)}": rng.gauss(len(y), 1.0) for _ in range(8)}
        x[rng.randrange(names)] = rng.random()
        x["word"] = f"w{rng.randrange(1 + step // 2)}"
        found.append((x, float(y[1:]) if numeric else y))
    return found


def state(learner: Any) -> tuple[list[Any], list[Any], dict[str, Any]]:
    names, labels, arrays = learner._engine.dump()
    return names, labels, arrays


def assert_same(found: Any, expected: Any) -> None:
    assert found[:2] == expected[:2]
    assert found[2].keys() == expected[2].keys()
    for name, array in found[2].items():
        assert array.tobytes() == expected[2][name].tobytes(), name


@pytest.fixture(autouse=True)
def _all_succeed() -> Iterator[None]:
    yield
    fail_at(0)


def failing(call: Any, k: int) -> OutOfMemoryError | None:
    """The error of a call whose k-th allocation fails; None when it takes fewer."""
    fail_at(k)
    try:
        call()
    except OutOfMemoryError as error:
        return error
    finally:
        fail_at(0)
    return None


@pytest.mark.parametrize(("cls", "params"), forms())
def test_learn_one_leaves_the_learner_as_it_was(cls: Any, params: dict[str, Any]) -> None:
    learner, twin = cls(**params), cls(**params)
    failures = 0
    for x, y in instances(24, 3, is_regressor(learner)):
        before = state(learner)
        k = 1
        while (error := failing(lambda x=x, y=y: learner.learn_one(x, y), k)) is not None:
            assert error.learned == 0
            assert_same(state(learner), before)
            learner.predict_one(x)
            k += 1
            failures += 1
        twin.learn_one(x, y)
        assert_same(state(learner), state(twin))
    assert failures > 10


@pytest.mark.parametrize(("cls", "params"), forms())
def test_learn_many_stops_after_a_whole_row(cls: Any, params: dict[str, Any]) -> None:
    learner, twin = cls(**params), cls(**params)
    rows = instances(24, 4, is_regressor(learner))
    block = varifold.to_block([x for x, _ in rows], [y for _, y in rows], numeric=is_regressor(learner))
    at, k, failures = 0, 1, 0
    while at < len(block):
        error = failing(lambda at=at: learner.learn_many(block[at:]), k)
        learned = len(block) - at if error is None else error.learned
        if learned:
            twin.learn_many(block[at : at + learned])
            at += learned
            k = 0
        assert_same(state(learner), state(twin))
        k += 1
        failures += error is not None
    assert failures > 5
    assert learner.steps == len(block)


def test_prediction_survives_too() -> None:
    learner = varifold.OLVF()
    learner.learn_one({"a": 1.0}, "x")
    wide = {f"f{i}": 1.0 for i in range(200)}
    fail_at(1)
    with pytest.raises(MemoryError):
        learner.predict_one(wide)
    fail_at(0)
    assert learner.predict_one(wide) == "x"
    assert np.isfinite(learner.predict_proba_one(wide)["x"])
