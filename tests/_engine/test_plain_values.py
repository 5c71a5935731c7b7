"""Labels and names are plain values before anything changes, whatever the code of a subclass does."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pytest

import varifold
from tests._engine.test_out_of_memory import assert_same, state
from varifold._engine.names.vocabulary import clear_labels
from varifold.errors import DataError, FeatureNameError, FeatureValueError, LabelError, TargetError


class Moody(str):
    """A str that raises when it is compared, `raises` times."""

    raises = 0

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        if type(self).raises:
            type(self).raises -= 1
            raise RuntimeError("not now")
        return str.__eq__(self, other)


class Apart(str):
    """A str that equals nothing but itself."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_scalar_of_arrow_is_its_value() -> None:
    pa = pytest.importorskip("pyarrow")
    one, many, expected = varifold.AROW(), varifold.AROW(), varifold.AROW()
    for label in ("a", "b", None, "a"):
        one.learn_one({"x": 1.0}, pa.scalar(label))
    labels = pa.chunked_array([["a", "b"], [None, "a"]])
    many.learn_many([{"x": 1.0}] * 4, list(labels))
    expected.learn_many([{"x": 1.0}] * 4, ["a", "b", None, "a"])
    assert set(one.predict_proba_one({"x": 1.0})) == {"a", "b"}
    assert_same(state(one), state(expected))
    assert_same(state(many), state(expected))


@pytest.mark.parametrize("costs", [{"a": 2.0}, {"a": {"b": 2.0}}])
@pytest.mark.parametrize("raises", range(5))
@pytest.mark.parametrize("method", ["orf3v", "arow"])
def test_a_label_that_raises_leaves_the_state(method: str, costs: Any, raises: int) -> None:
    learner = varifold.models[method](costs=costs)
    for step in range(6):
        learner.learn_one({"x": float(step)}, "ab"[step % 2])
    before = state(learner)
    Moody.raises = raises
    try:
        learner.learn_one({"x": 1.0, "new": 2.0}, Moody("c"))
    except RuntimeError:
        assert_same(state(learner), before)
    Moody.raises = 0
    for step in range(20):
        learner.learn_one({"x": float(step), f"f{step}": 1.0}, "abc"[step % 3])
        assert set(learner.predict_proba_one({"x": 1.0})) == {"a", "b", "c"}


class Silent:
    """A label without a text as long as `silent` is set."""

    silent = True

    def __repr__(self) -> str:
        if type(self).silent:
            raise RuntimeError("not now")
        return "silent"


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("method", ["orf3v", "arow", "gaussiannb", "auto"])
def test_a_label_without_a_text_leaves_the_state(method: str, many: bool) -> None:
    """A label that is counted but has no class leads outside of the arrays of the classes."""
    learner = varifold.models[method]()
    for step in range(6):
        learner.learn_one({"x": float(step)}, "ab"[step % 2])
    before, label = state(learner), Silent()
    Silent.silent = True
    with pytest.raises(RuntimeError, match="not now"):
        learner.learn_many([{"x": 1.0}], [label]) if many else learner.learn_one({"x": 1.0, "new": 2.0}, label)
    Silent.silent = False
    assert learner.classes == ["a", "b"]
    assert_same(state(learner), before)
    learner.learn_one({"x": 1.0}, label)
    assert set(learner.predict_proba_one({"x": 1.0})) == {"a", "b", label}


class Number(int):
    """An int that equals nothing but itself."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class Pair(tuple[Any, ...]):
    """A tuple that equals nothing but itself."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize(
    ("make", "plain"),
    [
        (lambda: Number(3), 3),
        (lambda: Pair((Apart("a"), 1)), ("a", 1)),
        (lambda: (Number(3), (Apart("b"), b"c")), (3, ("b", b"c"))),
    ],
)
def test_a_label_of_any_subclass_is_kept_as_a_plain_value(make: Any, plain: Any) -> None:
    learner = varifold.AROW()
    for _ in range(3):
        learner.learn_one({"x": 1.0}, make())
        learner.learn_many([{"x": 1.0}], [make()])
    assert learner.classes == [plain]
    assert varifold.from_bytes(learner.to_bytes()).classes == [plain]


def test_a_label_of_many_nested_tuples_is_rejected() -> None:
    label: Any = ()
    for _ in range(1_000):
        label = (label,)
    learner = varifold.AROW()
    with pytest.raises(LabelError, match="within one another"):
        learner.learn_one({"x": 1.0}, label)
    assert learner.classes == []


def test_a_label_of_a_subclass_is_kept_as_a_plain_str() -> None:
    learner = varifold.AROW()
    learner.learn_one({"x": 1.0}, Apart("a"))
    learner.learn_one({"x": 1.0}, Apart("a"))
    learner.learn_one({"x": 2.0}, "a")
    assert learner.classes == ["a"]
    assert type(learner.classes[0]) is str
    block = varifold.Block.from_dicts([{"x": 1.0}, {"x": 2.0}], [Apart("a"), Apart("a")])
    assert block.y == ["a", "a"]
    assert len(block.labels) == 1


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("method", ["orf3v", "arow", "gaussiannb", "arowregressor"])
def test_one_name_given_twice_is_rejected(method: str, known: bool) -> None:
    learner = varifold.models[method]()
    for step in range(12):
        learner.learn_one({"a" if known else "b": float(step), "c": 1.0}, step % 2)
    before = state(learner)
    x = {Apart("a"): 1.0, Apart("a"): 2.0, "c": 3.0}
    for call in (lambda: learner.learn_one(x, 1), lambda: learner.predict_one(x), lambda: learner.learn_many([x], [1])):
        with pytest.raises(FeatureNameError, match="'a' is given twice"):
            call()
    assert_same(state(learner), before)


def test_the_labels_of_a_block_cannot_be_changed_through_their_list() -> None:
    block = varifold.Block.from_dicts([{"x": 1.0}, {"x": 2.0}], ["a", "b"])
    block.labels.values.clear()
    assert block.labels.values == ["a", "b"]
    learner = varifold.AROW()
    learner.learn_many(block)
    assert learner.classes == ["a", "b"]
    assert not hasattr(block.labels, "clear")
    assert block.y == ["a", "b"]
    clear_labels(block.labels)
    with pytest.raises(DataError, match="labels of the block were cleared"):
        learner.learn_many(block)
    assert learner.steps == 2


def test_an_empty_indptr_is_rejected() -> None:
    with pytest.raises(DataError, match="indptr is empty"):
        varifold.Block(varifold.Vocabulary(), [], [], [])


@pytest.mark.parametrize("method", ["orf3v", "arow", "gaussiannb", "arowregressor"])
def test_a_weight_that_is_almost_0_counts_as_0(method: str) -> None:
    learner, twin = varifold.models[method](), varifold.models[method]()
    rows = [({"x": float(step % 5), "y": 1.0}, step % 2) for step in range(40)]
    weights = [5e-324 if step % 3 == 0 else 1.0 for step in range(40)]
    for (x, y), w in zip(rows, weights, strict=True):
        learner.learn_one(x, y, w)
        twin.learn_one(x, y, 0.0 if w < 1.0 else w)
    assert_same(state(learner), state(twin))
    numeric = method.endswith("regressor")
    block = varifold.to_block([x for x, _ in rows], [y for _, y in rows], np.array(weights), numeric=numeric)
    many = varifold.models[method]()
    many.learn_many(block)
    assert_same(state(many), state(learner))


@pytest.mark.parametrize("w", [10**400, "1", None, -1.0, float("nan")])
def test_a_weight_that_is_none_is_rejected(w: Any) -> None:
    learner = varifold.AROW()
    with pytest.raises(DataError, match="weight"):
        learner.learn_one({"x": 1.0}, "a", w)
    assert learner.steps == 0


LONG = 10**5000


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("x", [{LONG: 1.0}, {LONG: "x"}, {"a": LONG}, {1: 1.0, LONG: 0.5}, {np.str_("a"): -LONG}])
def test_an_int_that_has_no_text_is_rejected(x: dict[Any, Any], many: bool) -> None:
    model = varifold.AROW()
    with pytest.raises((FeatureNameError, FeatureValueError), match=r"int of 16,610 bits|int too large for a float"):
        model.learn_many([x], [1]) if many else model.learn_one(x, 1)
    assert model.steps == 0
    model.to_bytes()


def test_labels_keys_and_targets_of_too_many_digits_are_rejected() -> None:
    model, by_key = varifold.AROW(), varifold.PerKey(varifold.AROW(), key="k")
    for rejected in (lambda: model.learn_one({"a": 1.0}, LONG), lambda: model.learn_many([{"a": 1.0}], [(LONG,)])):
        with pytest.raises(LabelError, match="16,610 bits"):
            rejected()
    with pytest.raises(LabelError, match="16,610 bits"):
        by_key.learn_one({"k": LONG, "a": 1.0}, 1)
    regressor = varifold.AROWRegressor()
    with pytest.raises(TargetError, match="too large"):
        regressor.learn_one({"a": 1.0}, LONG)
    with pytest.raises(TargetError, match="too large"):
        regressor.learn_many([{"a": 1.0}], [LONG])
    with pytest.raises(FeatureNameError, match="16,610 bits"):
        varifold.Vocabulary().add(LONG)
    assert model.steps == by_key.steps == regressor.steps == 0
    for saved in (model, by_key, regressor):
        saved.to_bytes()


def test_a_signalling_nan_is_no_label() -> None:
    model = varifold.AROW()
    model.learn_one({"a": 1.0}, decimal.Decimal("sNaN"))
    model.learn_many([{"a": 1.0}], [decimal.Decimal("sNaN")])
    assert (model.steps, model.classes) == (0, [])
