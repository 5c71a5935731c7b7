"""Blocks and vocabularies after an attempt to change what was checked: rejected, or as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import varifold
from varifold import Block, Vocabulary, to_block
from varifold.checks.material import state
from varifold.errors import DataError, FeatureNameError

ARRAYS = ("indptr", "indices", "values", "codes", "weights")


def block() -> Block:
    rows = [{"a": float(i), "b": -float(i)} for i in range(20)]
    return to_block(rows, [i % 2 for i in range(20)], [1.0] * 20)


def test_bytes_of_a_mask_other_than_0_and_1_count_as_true() -> None:
    kept = np.zeros(40, dtype=np.uint8)
    kept[::2] = 255
    assert list(block().keep(kept.view(bool)).rows()) == [{"a": float(i)} for i in range(20)]


def test_a_block_is_not_subclassed() -> None:
    """The engine trusts the length of a block, which a subclass could give otherwise."""
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Longer", (Block,), {"__len__": lambda self: 10**7})


def test_to_initialise_a_block_again_changes_nothing() -> None:
    made = block()
    made.__init__(made.vocabulary, [0, 10**6], [], [])  # type: ignore[misc]
    assert len(made) == 20
    assert list(made.rows()) == list(block().rows())


def test_a_block_is_made_with_its_arrays() -> None:
    with pytest.raises(TypeError):
        Block.__new__(Block)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("make", [block, lambda: block()[2:9], lambda: block().take([3, 1]), lambda: Block(
    (v := block()).vocabulary, v.indptr, v.indices, v.values, v.codes, v.labels, v.weights
)], ids=["dicts", "slice", "take", "arrays"])  # fmt: skip
def test_arrays_of_a_block_stay_read_only(name: str, make: Any) -> None:
    array = getattr(make(), name)
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.setflags(write=True)


class Changing(list[Any]):
    """A list whose entry 2 is another one from the second reading on."""

    readings = 0

    def __getitem__(self, place: Any) -> Any:
        self.readings += place == 2
        return super().__getitem__(place) if self.readings < 2 or place != 2 else 10**6


def test_a_vocabulary_is_filled_with_what_was_checked() -> None:
    vocabulary = Vocabulary()
    vocabulary.fill([None, "a", "a=b"], [8, 2, 4], Changing([0, 1, 1]), [])
    assert vocabulary.level_of(2) == ("a", "b")


@pytest.mark.parametrize("name", [1.5, (), True, np.str_("a"), np.int64(1)])
def test_a_vocabulary_is_filled_with_exact_names(name: Any) -> None:
    with pytest.raises(ValueError, match="neither a str nor an int"):
        Vocabulary().fill([None, name], [8, 1], [0, 1], [])


def test_a_masked_weight_is_no_number() -> None:
    model = varifold.AROW()
    with pytest.raises(DataError, match="the weight of instance 1 is nan"):
        model.learn_many([{"a": 1.0}, {"a": 2.0}], [0, 1], np.ma.array([1.0, 2.0], mask=[False, True]))
    with pytest.raises(DataError, match=r"the weight of instance 0 is .*timedelta64"):
        model.learn_many([{"a": 1.0}], [0], np.array([1], dtype="m8[s]"))
    assert model.steps == 0


def test_a_masked_target_is_not_known() -> None:
    one, other = varifold.AROWRegressor(), varifold.AROWRegressor()
    one.learn_many([{"a": 1.0}, {"a": 2.0}], np.ma.array([7.0, 1e6], mask=[False, True]))
    other.learn_one({"a": 1.0}, 7.0)
    assert state(one) == state(other)


@pytest.mark.parametrize("name", ["arow", "auto", "copularegressor"])
def test_names_that_clash_are_rejected_at_weight_0_too(name: str) -> None:
    x = {"kind": "x", "kind=x": 1.0}
    one = varifold.models[name]()
    with pytest.raises(FeatureNameError, match="kind=x"):
        one.learn_one(x, 1, 0.0)
    with pytest.raises(FeatureNameError, match="kind=x"):
        one.learn_many([x], [1], [0.0])
    assert one.steps == 0
