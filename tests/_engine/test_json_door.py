"""The door for JSON lines leaves the state, the answers and the errors of json.loads and the door for dicts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests._engine.json_lines import line, loaded
from varifold import AROW, OLVF, ORF3V, AROWRegressor, AutoClassifier, AutoRegressor, GaussianNB
from varifold._numeric.memory import fail_at
from varifold.checks.material import is_regressor, state
from varifold.errors import (
    DataError,
    FeatureNameError,
    FeatureValueError,
    LabelError,
    OutOfMemoryError,
    ParameterError,
)

LEARNERS = {
    "arow": lambda: AROW(),
    "balanced": lambda: AROW(objective="balanced"),
    "bounded": lambda: OLVF(max_features=12),
    "minmax": lambda: AROW(scale="minmax", max_features=6, evict="lightest"),
    "gaussiannb": lambda: GaussianNB(scale="none"),
    "forest": lambda: ORF3V(seed=1),
    "auto": lambda: AutoClassifier(),
    "arowregressor": lambda: AROWRegressor(max_features=12),
    "autoregressor": lambda: AutoRegressor(),
}


def outcome(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a call returned, or the error it raised."""
    try:
        return repr(call(*given, **named))
    except Exception as error:  # noqa: BLE001 - whatever json.loads raises, the door raises
        return type(error), str(error)


def by_dicts(learner: Any, data: Any, target: str | None, y: Any = None, w: float = 1.0) -> tuple[Any, ...]:
    """(prediction, probabilities, outcome of learning) through json.loads."""

    def found() -> Any:
        x, taken = loaded(data, target)
        if not isinstance(x, dict) and target is not None:
            learner.predict_one(x)
        return x, (taken if target is not None else y)

    return (
        outcome(lambda: learner.predict_one(found()[0])),
        None if is_regressor(learner) else outcome(lambda: learner.predict_proba_one(found()[0])),
        outcome(lambda: learner.learn_one(*found(), w)),
    )


def by_json(learner: Any, data: Any, target: str | None, y: Any = None, w: float = 1.0) -> tuple[Any, ...]:
    """The same through the door for JSON."""
    return (
        outcome(learner.predict_json, data, target=target),
        None if is_regressor(learner) else outcome(learner.predict_proba_json, data, target=target),
        outcome(learner.learn_json, data, y, w, target=target),
    )


def assert_twins(make: Callable[[], Any], seed: int, lines: int) -> None:
    """Two learners, one per door, stay equal to the bit; a third one predicts and learns in one call."""
    rng = random.Random(seed)
    dicts, texts, fused = make(), make(), make()
    for i in range(lines):
        data: Any = line(rng)
        if rng.random() < 0.1:
            data = bytearray(data) if rng.random() < 0.5 else data.decode("utf-8", "replace")
        target, y, w = ("label", None, 1.0) if rng.random() < 0.8 else (None, rng.choice([0, 1, None, []]), 0.5)
        expected = by_dicts(dicts, data, target, y, w)
        assert by_json(texts, data, target, y, w) == expected, data
        both = outcome(fused.predict_learn_json, data, y, w, target=target)
        assert both == (expected[0] if expected[2] == "None" or type(expected[0]) is tuple else expected[2]), data
        if i % 50 == 0:
            assert state(texts) == state(dicts) == state(fused), data
    assert state(texts) == state(dicts) == state(fused)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LEARNERS)
def test_random_lines_leave_the_state_answers_and_errors_of_dicts(name: str, seed: int) -> None:
    assert_twins(LEARNERS[name], seed, 250)


def test_the_doors_take_turns_on_one_learner() -> None:
    rng = random.Random(5)
    mixed, plain = OLVF(max_features=10), OLVF(max_features=10)
    for _ in range(800):
        data = line(rng)
        expected = by_dicts(plain, data, "label")
        door = by_json if rng.random() < 0.5 else by_dicts
        assert door(mixed, data, "label") == expected, data
    assert state(mixed) == state(plain)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2, "label": 1}', '{"a": 2, "a": null, "label": 1}', '{"new": 1, "new": null, "label": 1}',
        '{"a": 1, "label": 0, "label": 1}', '{"a": 1, "\\u0061": 3, "label": 1}', '{"\\u006cabel": 1, "a": 2}',
        '{"a": -0, "b": -0.0, "label": 1}', '{"a": true, "b": false, "label": true}', '{"a": 1e150, "label": 1}',
        '{"a": 1234567890123456789012345678, "label": 1}', '{"a": NaN, "label": 1}', '{"a": "x", "b": "y", "label": 1}',
        '{"a": 0.30000000000000004, "b": 5e-324, "label":1}', '  {"a"\n:\t1\r,"label":1 }  ', '{"label": "gr\\u00fcn"}',
        '{"label": 1}', '{"a": {"b": 1}, "label": 1}', '{"a": 1e999, "label": 1}', '{"a": 1, "label": null}',
        '{"a": 1, "label": [1]}', '{"a": 1}', '{"a": 1,}', '{"a": 1} x', '{"a": 01}', "{", "", "[1]", '{"a": "\ud800"}',
        '{"a": "\\ud800", "label": 1}', '{"label": 12345678901234567890123}', '{"label": -5}', '{"label": 2.5, "a": 1}',
    ],
)  # fmt: skip
def test_chosen_lines(text: str) -> None:
    for data in (text, text.encode("utf-8", "surrogatepass")):
        dicts, texts = AROW(), AROW()
        for before in (b'{"a": 0.5, "b": "y", "label": 1}', b'{"a": 1.5, "label": 0}'):
            by_dicts(dicts, before, "label"), by_json(texts, before, "label")
        assert by_json(texts, data, "label") == by_dicts(dicts, data, "label")
        assert state(texts) == state(dicts)


def test_numbers_are_the_nearest_doubles() -> None:
    rng = random.Random(3)
    numbers = [repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-40, 40)) for _ in range(8_000)]
    numbers += [f"{rng.randrange(10**19)}e{rng.randrange(-30, 30)}" for _ in range(8_000)]
    numbers += [f"{rng.randrange(2**53, 2**64)}" for _ in range(2_000)]
    numbers += [f"0.{'0' * rng.randrange(20)}{rng.randrange(10**17)}" for _ in range(2_000)]
    for start in range(0, len(numbers), 50):
        text = ", ".join(f'"f{i}": {number}' for i, number in enumerate(numbers[start : start + 50]))
        by_text, by_dict = GaussianNB(scale="none"), GaussianNB(scale="none")  # keep a first value as it is
        for learner in (by_text, by_dict):
            learner.learn_one({f"f{i}": 0.0 for i in range(50)}, 0)  # the names are known
        by_text.learn_json(f"{{{text}}}", 1)
        by_dict.learn_one(json.loads(f"{{{text}}}"), 1)
        assert state(by_text) == state(by_dict), text


def test_many_spellings_and_evicted_names_are_held_in_bounded_memory() -> None:
    model, twin = OLVF(max_features=8), OLVF(max_features=8)
    for i in range(3_000):
        data = f'{{"f{i % 40}": {i % 7}, "\\u0066{i % 11}": 1.5, "label": {i % 2}}}'.encode()
        model.learn_json(data, target="label")
        x = json.loads(data)
        twin.learn_one(x, x.pop("label"))
    assert state(model) == state(twin)


def test_a_thousand_names_in_any_order() -> None:
    rng = random.Random(2)
    names = [f"name {i}" for i in range(1_000)]
    model, twin = AROW(), AROW()
    for i in range(20):
        x = {name: rng.random() for name in rng.sample(names, 700)}
        model.learn_json(json.dumps(x), i % 2)
        twin.learn_one(x, i % 2)
    assert state(model) == state(twin)


def test_errors_name_the_feature_and_leave_the_state() -> None:
    model = AROW()
    model.learn_json(b'{"a": 1, "c": "red", "y": "no"}', target="y")
    before = state(model)
    for data, error, said in [
        (b'{"a": [1], "y": 1}', FeatureValueError, "feature 'a'"),
        (b'{"a": Infinity, "y": 1}', FeatureValueError, "feature 'a' is inf"),
        (b'{"c=red": 1, "y": 1}', FeatureNameError, "'c=red'"),
        (b'{"a": 1}', LabelError, "the label is None"),
        (b"[1]", DataError, "type list"),
        (b'{"a": 1', json.JSONDecodeError, "Expecting"),
    ]:
        with pytest.raises(error, match=said.replace("[", r"\[")):
            model.learn_json(data, target="y")
        assert state(model) == before
    with pytest.raises(ParameterError, match="give one of the two"):
        model.learn_json(b"{}", "no", target="y")
    with pytest.raises(ParameterError, match="the target is 3"):
        model.predict_json(b"{}", target=3)
    assert state(model) == before


def test_predict_changes_nothing() -> None:
    model = AROW(max_features=3)
    model.learn_json(b'{"a": 1, "b": 2, "y": 1}', target="y")
    before = state(model)
    model.predict_json(b'{"a": 3, "new": 4, "b": "level", "y": 7}', target="y")
    model.predict_proba_json(b'{"newer": "x"}')
    assert state(model) == before


def test_memory_that_runs_out_leaves_the_state() -> None:
    rng = random.Random(4)
    lines = [json.dumps({f"n{rng.randrange(10 + i)}": rng.random() for _ in range(30)}) for i in range(40)]
    model, twin = AROW(), AROW()
    failures = 0
    try:
        for i, data in enumerate(lines):
            for k in range(1, 20):
                before = state(model)
                fail_at(k)
                try:
                    model.predict_learn_json(data, f"y{i % 5}")
                except OutOfMemoryError:
                    fail_at(0)
                    failures += 1
                    assert state(model) == before
                else:
                    fail_at(0)
                    break
            twin.learn_one(json.loads(data), f"y{i % 5}")
    finally:
        fail_at(0)
    assert failures > 10
    assert state(model) == state(twin)
