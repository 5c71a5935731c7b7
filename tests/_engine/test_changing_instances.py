"""A dict that changes while it is read, by the code of its own values or names, does no harm."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import varifold


class Meddler(float):
    """A float whose reading changes the dict that holds it."""

    target: dict[Any, Any]
    change: str

    def __float__(self) -> float:
        if self.change == "grow":
            for i in range(5_000):
                self.target[f"more{i}"] = float(i)
        elif self.change == "shrink":
            self.target.clear()
        else:
            for name in list(self.target):
                self.target[name] = 3.0
        gc.collect()
        return 1.0


class Name(str):
    """A name whose reading changes the dict that holds it."""

    target: dict[Any, Any]

    def __str__(self) -> str:
        self.target.clear()
        return "name"

    __hash__ = str.__hash__


def meddled(change: str) -> dict[Any, Any]:
    x: dict[Any, Any] = {f"f{i}": float(i) for i in range(10)}
    for i in range(3):
        value = Meddler(i)
        value.target, value.change = x, change
        x[f"m{i}"] = value
    x.update({f"g{i}": float(i) for i in range(10)})
    return x


EXPECTED = {*(f"f{i}" for i in range(10)), *(f"g{i}" for i in range(10)), *(f"m{i}" for i in range(3))}


@pytest.mark.parametrize("change", ["grow", "shrink", "replace"])
def test_the_instance_is_the_one_that_was_given(change: str) -> None:
    learner = varifold.OLVF()
    learner.learn_one(meddled(change), "a")
    assert set(learner.features) == EXPECTED
    assert learner.predict_one(meddled(change)) == "a"


@pytest.mark.parametrize("change", ["grow", "shrink", "replace"])
def test_blocks_too(change: str) -> None:
    block = varifold.Block.from_dicts([meddled(change), {"f0": 1.0}], ["a", "b"])
    assert set(block.row(0)) == EXPECTED
    assert block.row(1) == {"f0": 1.0}


def test_a_name_with_code_of_its_own() -> None:
    learner = varifold.OLVF()
    x: dict[Any, Any] = {"a": 1.0, "b": 2.0}
    name = Name("zzz")
    name.target = x
    x[name] = 3.0
    x["c"] = 4.0
    learner.learn_one(x, "y")
    assert set(learner.features) == {"a", "b", "c", "zzz"}  # its text, whatever it shows itself as
