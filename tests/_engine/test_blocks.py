"""What becomes a block, and what is rejected with a reason."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import varifold
from varifold import Block, Vocabulary, to_block
from varifold._engine.names.vocabulary import Labels
from varifold.errors import DataError, FeatureNameError, FeatureValueError


def test_an_array_of_strings_holds_categories():
    rows = [["red", "1"], ["blue", "2"]]
    block = to_block(np.array(rows), names=["colour", "size"])
    assert list(block.rows()) == [{"colour": "red", "size": "1"}, {"colour": "blue", "size": "2"}]


@pytest.mark.parametrize("array", [np.array([[1j]]), np.array([["2020-01-01"]], dtype="M8[D]"), np.array([[b"x"]])])
def test_an_array_of_what_has_no_number_is_rejected(array):
    with pytest.raises(FeatureValueError, match="feature"):
        to_block(array)


def test_a_sparse_matrix_of_complex_numbers_is_rejected():
    with pytest.raises(FeatureValueError, match="complex"):
        to_block(sparse.csr_array(np.array([[1j]])))


def test_a_frame_with_a_name_twice_is_rejected():
    with pytest.raises(FeatureNameError, match="'a'"):
        to_block(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))


@pytest.mark.parametrize("y", ["a", b"a", {"a": 1}, pd.DataFrame({"label": ["a"]})])
def test_labels_are_a_sequence(y):
    model = varifold.OLVF()
    with pytest.raises(DataError, match="one per instance"):
        model.learn_many([{"f": 1.0}], y)
    assert model.classes == []


@pytest.mark.parametrize("X", ["text", b"text", {"f": 1.0}, 5, [[1.0]], ["text"], (None,), pd.Series([1.0])])
def test_instances_are_mappings(X):
    with pytest.raises(DataError, match="iterable of dicts"):
        to_block(X)


def test_a_misspelled_learner_gets_the_nearest_name():
    with pytest.raises(AttributeError, match="OLVF"):
        _ = varifold.OLFV


@pytest.mark.parametrize("x", [[1.0, 2.0], "abc", 3, None])
def test_what_is_no_mapping_is_rejected(x):
    learner = varifold.OLVF()
    calls = [learner.predict_one, learner.predict_proba_one, learner.explain_one, lambda x: learner.learn_one(x, 1)]
    for call in calls:
        with pytest.raises(DataError, match=f"step 1 is of type {type(x).__name__}; pass a mapping"):
            call(x)
    assert learner.features == {}


def test_of_equal_labels_the_one_that_is_learned_is_kept():
    rows, y, w = [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}], [1, True, 0], [0.0, 1.0, 1.0]
    one, many = varifold.OLVF(), varifold.OLVF()
    for x, label, weight in zip(rows, y, w, strict=True):
        one.learn_one(x, label, weight)
    many.learn_many(rows, y, w)
    assert [type(label) for label in many.predict_proba_one({})] == [bool, int]
    assert repr(many.predict_proba_one({})) == repr(one.predict_proba_one({}))


def test_codes_beyond_the_labels_are_rejected() -> None:
    vocabulary = Vocabulary()
    vocabulary.add("a")
    with pytest.raises(DataError, match="label codes"):
        Block(vocabulary, [0, 1, 2], [1, 1], [1.0, 2.0], codes=[0, 50_000_000])
    with pytest.raises(DataError, match="label codes"):
        Block(vocabulary, [0, 1], [1], [1.0], codes=[-2], labels=Labels(["x"]))


@pytest.mark.parametrize("indptr", [[0, 2, 1, 2], [0, 10**12, 2, 2], [0, -5, 2, 2]])
def test_an_indptr_that_falls_is_rejected_before_it_is_used(indptr: list[int]) -> None:
    vocabulary = Vocabulary()
    vocabulary.add("a")
    with pytest.raises(DataError, match="must not fall"):
        Block(vocabulary, indptr, [1, 1], [1.0, 2.0])


def test_what_was_checked_stays_as_it_was() -> None:
    vocabulary = Vocabulary()
    vocabulary.add("a")
    indices, values = np.array([1, 1], dtype=np.int32), np.array([1.0, 2.0])
    block = Block(vocabulary, [0, 1, 2], indices, values)
    indices[0] = 1_000_000
    values[0] = np.inf
    assert block.row(0) == {"a": 1.0}
    for array in (block.indptr, block.indices, block.values, block.codes, block[1:].values, block.take([1]).indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_no_block_is_no_crash() -> None:
    learner = varifold.OLVF()
    with pytest.raises(DataError):
        learner.run_block(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        learner._engine.run(None)  # type: ignore[arg-type]
    with pytest.raises(DataError):
        Block(None, [0], [], [])  # type: ignore[arg-type]


@pytest.mark.parametrize("i", [-1, 0, 2, 10**9])
def test_ids_that_are_not_there(i: int) -> None:
    vocabulary = Vocabulary()
    vocabulary.add("a")
    with pytest.raises(IndexError):
        vocabulary.is_indicator(i)
    with pytest.raises(IndexError):
        vocabulary.level_of(i)
    learner = varifold.OLVF()
    learner.learn_one({"a": 1.0}, "y")
    if not 0 <= i < 2:
        with pytest.raises(IndexError):
            learner._engine.magnitude(i)
        with pytest.raises(IndexError):
            learner._engine.role(i)
    with pytest.raises(IndexError):
        learner._engine.target.labels_of(np.array([10**6], dtype=np.int32))
    with pytest.raises(IndexError):
        learner._engine.explain_one({"a": 1.0}, 10**6)


def test_only_an_indicator_has_a_level() -> None:
    vocabulary = Vocabulary()
    with pytest.raises(ValueError, match="not the string value"):
        vocabulary.level_of(vocabulary.add("a"))


@pytest.mark.parametrize("codes", [np.array([2**32, 0]), [0.5, 0.0], ["0", "0"], [[0], [0]]])
def test_codes_that_do_not_fit_are_rejected(codes: object) -> None:
    vocabulary = Vocabulary()
    vocabulary.add("a")
    with pytest.raises(DataError, match="codes"):
        Block(vocabulary, [0, 1, 2], [1, 1], [1.0, 2.0], codes=codes, labels=Labels(["x"]))
