"""Numbers to predict: in blocks, through both APIs of the engine, in files, and rejected where they are no numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import varifold
from varifold import AROWRegressor, to_block
from varifold._engine.data.block import Block, concatenate
from varifold._engine.engine import Engine
from varifold._engine.targets.real_target import RealTarget
from varifold.base.blocks import with_numbers
from varifold.errors import DataError, ModelFileError, TargetError

ROWS = [{"a": float(t % 5), "b": float(t % 3)} for t in range(12)]
NUMBERS = [2.0 * t for t in range(12)]


@pytest.fixture
def block() -> Block:
    return to_block(ROWS, NUMBERS, numeric=True)


def test_a_block_of_numbers_has_no_labels(block: Block) -> None:
    assert block.y == NUMBERS
    assert block.labelled.all()
    assert (block.codes == -1).all()
    assert not len(block.labels)
    assert to_block(ROWS, NUMBERS).targets is None


def test_whatever_is_made_of_a_block_keeps_its_numbers(block: Block) -> None:
    picked = [5, 2]
    assert block.take(np.array(picked)).y == [10.0, 4.0]
    assert block[3:5].y == [6.0, 8.0]
    assert block[::4].y == [0.0, 8.0, 16.0]
    assert block.keep(block.values > 1.0).y == NUMBERS
    assert block.with_values(block.values + 1.0).y == NUMBERS
    assert concatenate([block[:5], block[5:]]).y == NUMBERS
    assert pickle.loads(pickle.dumps(block)).y == NUMBERS
    with pytest.raises(ValueError, match="read-only"):
        block.targets[0] = 7.0


def test_numbers_and_labels_are_not_joined(block: Block) -> None:
    plain = Block(block.vocabulary, block.indptr, block.indices, block.values, None, block.labels)
    with pytest.raises(DataError, match="cannot be joined"):
        concatenate([block, plain])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_values_and_targets_beyond_1e150_count_as_1e150(sign: float) -> None:
    largest, beyond = AROWRegressor(), [AROWRegressor() for _ in range(2)]
    for t, x in enumerate(ROWS):
        size = sign * 1e150 if t % 4 == 3 else 1.0 + t
        largest.learn_one({**x, "c": size}, size)
        size = sign * 1.7e308 if t % 4 == 3 else size
        beyond[0].learn_one({**x, "c": size}, size)
        beyond[1].learn_many([{**x, "c": size}], [size])
    assert [model.to_bytes() for model in beyond] == [largest.to_bytes()] * 2


def test_a_missing_number_is_none_and_is_ignored() -> None:
    block = to_block(ROWS[:3], [1.0, None, float("nan")], numeric=True)
    assert block.y == [1.0, None, None]
    assert block.labelled.tolist() == [True, False, False]
    model, first = AROWRegressor(), AROWRegressor()
    model.learn_many(block)
    first.learn_one(ROWS[0], 1.0)
    assert model.to_bytes() == first.to_bytes()
    with pytest.raises(DataError, match="y is missing; pass a target per instance"):
        model.learn_many(ROWS)
    assert model.to_bytes() == first.to_bytes()


def test_numbers_of_every_container() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    for given in (
        *(tuple(NUMBERS), iter(NUMBERS), np.array(NUMBERS, dtype=np.float32), np.array(NUMBERS, dtype=int)),
        *(np.array(NUMBERS, dtype=object), pd.Series(NUMBERS), pl.Series(NUMBERS), pa.chunked_array([NUMBERS])),
    ):
        assert to_block(ROWS, given, numeric=True).y == NUMBERS, type(given)
    assert to_block(ROWS[:2], pd.Series([1, None], dtype="Int64"), numeric=True).y == [1.0, None]
    assert to_block(ROWS[:2], pl.Series([1, None]), numeric=True).y == [1.0, None]


@pytest.mark.parametrize("bad", ["3.5", float("inf"), [1.0], 1j, 10**400])
def test_what_is_no_number_is_rejected(bad: Any) -> None:
    model = AROWRegressor()
    with pytest.raises(TargetError, match=r"at step 1 is .*; a regressor learns finite numbers"):
        model.learn_one({"a": 1.0}, bad)
    with pytest.raises(TargetError, match=r"of instance 1 is .*; a regressor learns finite numbers"):
        model.learn_many(ROWS[:2], [1.0, bad])
    assert model.steps == 0
    assert not model.features


def test_as_many_numbers_as_instances() -> None:
    with pytest.raises(DataError, match="2 numbers to predict for 3 instances"):
        to_block(ROWS[:3], [1.0, 2.0], numeric=True)


def test_labels_that_are_numbers_are_learned_as_such() -> None:
    labelled = to_block(ROWS, [3, 1.5] * 6)
    assert with_numbers(labelled).y == [3.0, 1.5] * 6
    one, other = AROWRegressor(), AROWRegressor()
    one.learn_many(labelled)
    other.learn_many(ROWS, [3, 1.5] * 6)
    assert one.to_bytes() == other.to_bytes()
    with pytest.raises(TargetError, match="is 'warm' of type str"):
        one.learn_many(to_block(ROWS[:2], [1.0, "warm"]))


def test_a_classifier_rejects_a_block_of_numbers(block: Block) -> None:
    with pytest.raises(DataError, match=r"numbers to predict.*regressor"):
        varifold.AROW().learn_many(block)


def test_unpredicted_rows_are_nan(block: Block) -> None:
    found = AROWRegressor().run_block(block, np.array([1, -1, 3]))
    assert np.flatnonzero(~np.isnan(found)).tolist() == [0, 2]


def test_a_schedule_ignores_missing_and_withheld_numbers() -> None:
    block = to_block(ROWS[:3], [1.0, None, 2.0], numeric=True)
    model = AROWRegressor()
    model.run_block(block, np.array([1, -2, -4, -6]))
    assert model.steps == 0
    for row in (4, -7, 0):
        with pytest.raises(DataError, match="rows that are not in the block"):
            model.run_block(block, np.array([row]))
    model.run_block(block, np.array([1, -1, 2, 3, -3]))
    assert model.steps == 2


def test_the_engine_takes_models_of_regression_only() -> None:
    with pytest.raises(TypeError, match="RegressionModel"):
        Engine(varifold.AROW()._model(), RealTarget())


def test_a_file_of_the_other_task_is_rejected(tmp_path: Any) -> None:
    model = AROWRegressor()
    model.learn_many(ROWS, NUMBERS)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="AROWRegressor, not a VaryingClassifier"):
        varifold.VaryingClassifier.load(tmp_path / "model")
    assert varifold.load(tmp_path / "model").predict_one(ROWS[0]) == model.predict_one(ROWS[0])


def test_traits_say_the_task() -> None:
    assert AROWRegressor().traits.task == "regression"
    assert AROWRegressor().traits.multiclass == "none"
    assert varifold.AROW().traits.task == "classification"


def test_a_detector_needs_no_truth_and_learns_rows_whose_label_is_withheld() -> None:
    model, plain = varifold.TailDetector(), varifold.TailDetector()
    block = to_block(ROWS)
    for detector, code in ((model, -(len(ROWS) + 3)), (plain, -3)):
        detector.run_block(block, np.array([code]))
        detector.run_block(block)
    assert model.steps == 1 + len(ROWS)
    assert model.to_bytes() == plain.to_bytes()
