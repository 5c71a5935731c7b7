"""Checks of predictions: labels, probabilities, sample weights, explanations, and that the learner learns."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from varifold.base import NO_FEATURES
from varifold.base.learner import is_regressor
from varifold.checks.material import (
    arrays,
    assert_explains_known,
    assert_same,
    assert_sound,
    clear_stream,
    learn,
    predictions,
    presence_stream,
    state,
    stream,
    stream_of,
    target,
)


def check_cold_start(learner: Any) -> None:
    """Before any label was learned a prediction is None or empty, and no error."""
    model = learner.clone()
    for x in ({}, {"a": 1.0}, {"a": None, "b": "level"}):
        assert model.predict_one(x) is None, f"predict_one({x}) before any label must return None"
        assert not model.predict_proba_one(x), f"predict_proba_one({x}) before any label must be empty"


def check_probabilities(learner: Any) -> None:
    """Probabilities are sound after every step and name every label learned so far."""
    model = learner.clone()
    seen = set()
    for x, y in stream(80):
        model.learn_one(x, y)
        seen.add(y)
        assert_sound(model, x, seen)


def check_single_class(learner: Any) -> None:
    """With one label learned, that label is predicted with probability 1."""
    model = learner.clone()
    for x, _ in stream(30):
        model.learn_one(x, "only")
        label, proba = model.predict_one(x), model.predict_proba_one({})
        assert label == "only", f"predict_one({x}) returned {label!r} though 'only' is the one label learned"
        assert proba == {"only": 1.0}, (
            f"predict_proba_one({{}}) returned {proba} though 'only' is the one label learned"
        )


def check_empty_instance(learner: Any) -> None:
    """An instance without features can be learned and predicted at any point of the stream."""
    model = learner.clone()
    model.learn_one({}, "no")
    label = model.predict_one({})
    assert label == "no", f"predict_one({{}}) returned {label!r} after learn_one({{}}, 'no')"
    for t, (x, y) in enumerate(stream(60)):
        model.learn_one({} if t % 5 == 0 else x, y)
        assert_sound(model, {}, {"no", "yes"} if "yes" in model.predict_proba_one({}) else {"no"})
    learn(model, [({}, "yes")] * 300)
    assert model.predict_one({}) == "yes", (
        "300 empty instances of one label must make it the prediction of an empty one"
    )


def check_predict_is_pure(learner: Any) -> None:
    """Predicting changes nothing: not the state, not the instance, not what is learned later."""
    queried, left = learner.clone(), learner.clone()
    pairs = stream_of(learner, 90)
    for x, y in pairs[:60]:
        queried.learn_one(x, y)
        left.learn_one(x, y)
    before, shown = state(queried), dict(pairs[70][0])
    for x, _ in [*pairs[55:], ({"never learned": 1.0}, None), ({}, None), ({"f0": "a level"}, None)]:
        for call in ("predict_one", "predict_proba_one", "margins_one", "explain_one"):
            if hasattr(queried, call):
                getattr(queried, call)(x)
    for call in ("predict_many", "predict_proba_many"):
        if hasattr(queried, call):
            getattr(queried, call)([x for x, _ in pairs[55:]])
    assert state(queried) == before, "predict changed the state"
    assert pairs[70][0] == shown, "predict changed the instance"
    learn(queried, pairs[60:])
    learn(left, pairs[60:])
    assert_same(left, queried, pairs, "a learner that predicted in between differs")


def check_same_twice(learner: Any) -> None:
    """Two learners with the same parameters (and seed) on the same stream end in the same state."""
    pairs = stream_of(learner, 90)
    one, other = learner.clone(), learner.clone()
    for x, y in pairs:
        assert predictions(one, [(x, y)]) == predictions(other, [(x, y)]), "two runs differ"
        one.learn_one(x, y)
        other.learn_one(x, y)
    assert_same(one, other, pairs, "two runs differ")


def check_late_class(learner: Any) -> None:
    """Labels that first appear late, also of other types, are predicted and learned."""
    model = learn(learner.clone(), clear_stream(60))
    late = [({"t": 5.0 + 0.1 * (i % 3), "g0": 0.1 * (i % 5)}, 3) for i in range(80)]
    other = clear_stream(80, seed=4)
    for pair_a, pair_b in zip(late, other, strict=True):
        learn(model, [pair_a, pair_b])
        assert_sound(model, pair_a[0], {"no", "yes", 3})
    hits = sum(model.predict_one(x) == 3 for x, _ in late)
    assert hits > len(late) // 2, f"a label that appeared late is predicted {hits} times of {len(late)}"
    model.learn_one({"u": 1.0}, ("a", 4))
    assert_sound(model, {"u": 1.0, "g1": 0.0}, {"no", "yes", 3, ("a", 4)})


def check_weights(learner: Any) -> None:
    """A weight of 0 does nothing, 1 is the default, 3 differs from 1; negative, infinite and NaN raise an error."""
    pairs = stream_of(learner, 60)
    plain, ones = learn(learner.clone(), pairs), learner.clone()
    for x, y in pairs:
        ones.learn_one(x, y, w=1.0)
        before = state(ones)
        ones.learn_one({"never kept": 1.0}, 7.0 if is_regressor(learner) else "never learned", w=0.0)
        assert state(ones) == before, "a weight of 0 changed the state"
    assert_same(plain, ones, pairs, "w=1.0 is not the default")
    weighted = learner.clone()
    for x, y in pairs:
        weighted.learn_one(x, y, w=3.0)
    assert_sound(weighted, pairs[0][0], {"no", "yes"})
    if arrays(weighted) is not None:
        assert state(weighted) != state(plain), "a weight of 3 left the state of a weight of 1"
    for bad in (-1.0, math.nan, math.inf):
        before = state(plain)
        with contextlib.suppress(ValueError):
            plain.learn_one(pairs[0][0], target(learner, 1), w=bad)
            raise AssertionError(f"a weight of {bad} must raise a ValueError")
        assert state(plain) == before, f"a rejected weight of {bad} changed the state"


def check_labels(learner: Any) -> None:
    """A label that cannot be hashed raises and does not change the state."""
    model = learn(learner.clone(), stream(20))
    before = state(model)
    for bad in (["a list"], {"a": "dict"}):
        with contextlib.suppress(ValueError, TypeError):
            model.learn_one({"a": 1.0, "new one": 2.0}, bad)
            raise AssertionError(f"the label {bad!r} must raise a ValueError or TypeError")
        assert state(model) == before, f"the rejected label {bad!r} changed the state"


def check_delayed_labels(learner: Any) -> None:
    """Labels that arrive 40 instances late leave the state of labels in time."""
    pairs = stream_of(learner, 120)
    late, plain = learner.clone(), learner.clone()
    for t in range(len(pairs) + 40):
        if t < len(pairs):
            late.predict_one(pairs[t][0])
        if t >= 40:
            late.learn_one(*pairs[t - 40])
    assert_same(learn(plain, pairs), late, pairs, "late labels")


def check_explanation(learner: Any) -> None:
    """Contributions of features to a label's score sum to that score."""
    model = learner.clone()
    assert model.explain_one({"a": 1.0}) == {}, "there is nothing to explain before any label"
    for t, (x, y) in enumerate(stream(90, labels=("a", "b", "c"))):
        model.learn_one(x, y)
        if t % 3:
            continue
        for label, margin in model.margins_one(x).items():
            total = math.fsum(model.explain_one(x, label).values())
            assert math.isclose(total, margin, rel_tol=1e-9, abs_tol=1e-9), f"{total} explains a score of {margin}"
        assert_explains_known(model, x, tuple(NO_FEATURES))


def check_learns(learner: Any) -> None:
    """On two well separated classes the accuracy is clearly above that of the majority class.

    The classes differ in the values, or, for a learner that uses presence alone, in which features are present.
    """
    model = learner.clone()
    uses_values = getattr(getattr(learner, "traits", None), "uses_values", True)
    pairs = clear_stream(600) if uses_values else presence_stream()
    hits = total = 0
    for t, (x, y) in enumerate(pairs):
        if t >= 300:
            hits += model.predict_one(x) == y
            total += 1
        model.learn_one(x, y)
    majority = max(sum(y == label for _, y in pairs[300:]) for label in ("no", "yes"))
    assert hits > majority + 0.1 * total, f"{hits} of {total} right where the majority class gives {majority}"


def check_plain_predictions(learner: Any) -> None:
    """Predictions are the labels as given, and probabilities Python floats, so that JSON and pickle can hold them."""
    model = learn(learner.clone(), stream(30, labels=(True, False)))
    for label, proba in predictions(model, stream(10, seed=2)):
        assert type(label) is bool, f"the label was predicted as a {type(label).__name__}"
        assert all(type(p) is float for p in proba.values()), "probabilities must be Python floats"
