"""Checks of the feature space: names, values, absence, growth, and extreme or malformed instances."""

from __future__ import annotations

import contextlib
import decimal
import inspect
import json
import math
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from varifold.base.learner import is_regressor
from varifold.checks.material import (
    LEVELS,
    Pair,
    arrays,
    assert_finite,
    assert_same,
    assert_sound,
    learn,
    predictions,
    state,
    stream_of,
    string_stream,
    target,
)


def check_key_order(learner: Any) -> None:
    """Keys may be in any order: the state is the same to the last bit."""
    pairs = stream_of(learner, 100)
    rng = random.Random(5)
    shuffled = [(dict(rng.sample(list(x.items()), len(x))), y) for x, y in pairs]
    assert_same(learn(learner.clone(), pairs), learn(learner.clone(), shuffled), pairs, "key order")


_CHILD = """
import json, pickle, sys
from varifold.checks.spaces import outcome
print(json.dumps([outcome(learner) for learner in pickle.load(sys.stdin.buffer)]))
"""


def outcome(learner: Any) -> str:
    """Return the final state of a run over sets of names, as text; it must not depend on the hash seed."""
    model = learner.clone()
    history = []
    for x, y in stream_of(learner, 60, labels=("a", "b", "c")):
        names = {f"word {ord(c)}" for c in repr(sorted(x.items(), key=repr))}
        model.learn_one({**x, **dict.fromkeys(names, 1.0)}, y)
        history.append(predictions(model, [(x, y)]))
    return state(model) if arrays(model) is not None else repr(history)


def check_hash_seed(learner: Any) -> None:
    """A process with another hash seed ends in the same state."""
    assert outcomes_elsewhere([learner]) == [outcome(learner)], "another hash seed leads to another state"


def outcomes_elsewhere(learners: Sequence[Any]) -> list[str]:
    """Return the outcome of each learner in a process with another hash seed."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join(p for p in sys.path if p)
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=pickle.dumps([learner.clone() for learner in learners]),
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        check=False,
    )
    message = child.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    assert child.returncode == 0, f"another process could not run the learner (is its class in a module?): {message}"
    digests: list[str] = json.loads(child.stdout)
    return digests


def check_changing_features(learner: Any) -> None:
    """Features may appear, vanish, return, or all change from one instance to the next."""
    model = learner.clone()
    seen = set()
    for t in range(120):
        names = [f"phase {t // 30} {j}" for j in range(4)] if t < 90 else [f"phase {t % 2} {j}" for j in range(4)]
        x = {name: math.sin(t + j) + (t % 2) for j, name in enumerate(names)}
        model.learn_one(x, t % 2)
        seen.add(t % 2)
        assert_sound(model, x, seen)
        assert_sound(model, {"never seen": 1.0}, seen)
    assert_finite(model)


def check_unknown_features(learner: Any) -> None:
    """Names and string values that were never learned do not change a prediction."""
    model = learn(learner.clone(), stream_of(learner, 80))
    for x, _ in stream_of(learner, 20, seed=2):
        more = {**x, "unknown": 3.5, 12345: 1.0, "unknown column": "a level"}
        assert predictions(model, [(more, None)]) == predictions(model, [(x, None)]), f"unknown features changed {x}"


def check_constant_feature(learner: Any) -> None:
    """A feature that never varies, even with a huge value, leaves predictions sound and the state finite."""
    model = learner.clone()
    for x, y in stream_of(learner, 60):
        x = {**x, "constant": 1e9, "zero": 0.0}
        model.learn_one(x, y)
    assert_sound(model, {"constant": 1e9, "f0": 1.0}, {"no", "yes"})
    assert_finite(model)


def check_absent(learner: Any) -> None:
    """A missing key, None and NaN are all the same: absent."""
    pairs = stream_of(learner, 80)
    every = sorted({k for x, _ in pairs for k in x}, key=repr)
    plain = learn(learner.clone(), pairs)
    for nothing in (None, math.nan, np.float64("nan"), decimal.Decimal("nan")):
        filled = [({**dict.fromkeys(every, nothing), **x}, y) for x, y in pairs]
        assert_same(plain, learn(learner.clone(), filled), filled, f"{nothing!r} is not read as absent")


def check_zero_is_a_value(learner: Any) -> None:
    """0.0 is an observed value: it makes the feature known."""
    pairs = [({**x, "meter": 0.0}, y) for x, y in stream_of(learner, 40)]
    model = learn(learner.clone(), pairs)
    assert_sound(model, {"meter": 0.0}, {"no", "yes"})
    if hasattr(model, "features"):
        assert "meter" in model.features, "an observed zero must make a feature known"
        assert model.features["meter"].count == 40, "an observed zero must count as seen"


INFINITE: tuple[Any, ...] = (math.inf, -math.inf, np.float64("inf"), decimal.Decimal("-Infinity"), 10**400)
BAD_VALUES: tuple[Any, ...] = (*INFINITE, b"bytes", [1.0], {}, 1j)
BAD_NAMES: tuple[Any, ...] = (("a", "tuple"), None, 1.5, b"bytes", True, frozenset())


def check_rejects(learner: Any) -> None:
    """Invalid values and names raise an error that names the feature, and do not change the state."""
    model = learn(learner.clone(), stream_of(learner, 40))
    before = state(model)
    for value in BAD_VALUES:
        for x in ({"f0": 1.0, "pressure": value}, {"pressure": value, "brand new": 1.0}):
            message = _rejection(model, x, before)
            assert "pressure" in message, f"the message {message!r} does not name the feature"
    for name in BAD_NAMES:
        _rejection(model, {"f0": 1.0, name: 1.0}, before)


def _rejection(model: Any, x: dict[Any, Any], before: str) -> str:
    """Return the message with which every call rejects an instance; the state must not change."""
    message = ""
    calls: dict[str, tuple[Any, ...]] = {"learn_one": (x, target(model, 1)), "predict_one": (x,)}
    if not is_regressor(model):
        calls["predict_proba_one"] = (x,)
    for name, given in calls.items():
        try:
            getattr(model, name)(*given)
        except (ValueError, TypeError) as error:
            message = str(error)
        else:
            raise AssertionError(f"{name}({x}) must raise a ValueError or TypeError")
    assert state(model) == before, f"the rejected instance {x} changed the state"
    return message


def check_name_clash(learner: Any) -> None:
    """A feature named 'f=v' and the string value v of f exclude each other, whichever comes first."""
    for first, second in (({"a": "b"}, {"a=b": 1.0}), ({"a=b": 1.0}, {"a": "b"})):
        model = learner.clone()
        model.learn_one({**first, "c": 1.0}, target(learner, 0))
        before = state(model)
        with contextlib.suppress(ValueError, TypeError):
            model.learn_one({**second, "d": 1.0}, target(learner, 1))
            raise AssertionError(f"{second} after {first} must be rejected")
        assert state(model) == before, f"{second}, rejected after {first}, changed the state"
    model = learner.clone()
    with contextlib.suppress(ValueError, TypeError):
        model.learn_one({"a": "b", "a=b": 1.0}, target(learner, 0))
        raise AssertionError("'a=b' as value and as feature in one instance must be rejected")


def check_extreme_values(learner: Any) -> None:
    """Values like 1e308 and 5e-324 leave a finite state and sound probabilities."""
    extremes = (1e308, -1e308, 5e-324, -5e-324, 1e-300, 1e155, -1e155, 1e16, 0.0, -0.0, 10**30)
    model = learner.clone()
    seen = set()
    for t in range(110):
        x = {f"e{j}": extremes[(t * (j + 3) + j) % len(extremes)] for j in range(4)} | {"plain": float(t % 2)}
        model.learn_one(x, t % 2)
        seen.add(t % 2)
        assert_sound(model, x, seen)
    assert_finite(model)


def check_finite_state(learner: Any) -> None:
    """After an ordinary stream every number in the state is finite."""
    model = learn(learner.clone(), stream_of(learner, 150))
    assert_finite(model)


def check_numpy_types(learner: Any) -> None:
    """NumPy scalars and names, bool and Decimal count as the plain numbers and names of the same value."""
    pairs = stream_of(learner, 80)
    turned = [({_numpy_name(k): _numpy_value(v, t) for k, v in x.items()}, y) for t, (x, y) in enumerate(pairs)]
    exact = [({k: _plain_value(v, t) for k, v in x.items()}, y) for t, (x, y) in enumerate(pairs)]
    assert_same(learn(learner.clone(), exact), learn(learner.clone(), turned), exact, "NumPy types")


def _numpy_name(name: Any) -> Any:
    return np.str_(name) if isinstance(name, str) else np.int64(name)


def _numpy_value(value: Any, t: int) -> Any:
    if isinstance(value, str):
        return np.str_(value)
    kinds: tuple[Any, ...] = (np.float64, np.float32, decimal.Decimal, lambda v: np.bool_(v > 0), lambda v: np.int16(v))
    return kinds[t % 5](value if t % 5 < 3 else min(max(value, -3e4), 3e4))


def _plain_value(value: Any, t: int) -> Any:
    turned = _numpy_value(value, t)
    return str(turned) if isinstance(turned, str) else float(turned)


def check_features(learner: Any) -> None:
    """`features` returns the first and last step and the count of each feature; string values are indicators."""
    model = learner.clone()
    rows = [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}, {"b": "x", 5: 0.0}, {}, {"a": None, "b": math.nan}]
    for t, x in enumerate(rows):
        model.learn_one(x, t % 2)
    known = {k: (f.first_seen, f.last_seen, f.count) for k, f in model.features.items()}
    wanted = {"a": (1, 2, 2), "b=x": (1, 3, 2), "b=y": (2, 2, 1), 5: (3, 3, 1)}
    assert known == wanted, f"first seen, last seen and count are {known}, and should be {wanted}"
    for name, feature in model.features.items():
        weight = feature.weight
        assert 0.0 <= weight < math.inf, f"the weight of {name!r} is {weight}; it is finite and >= 0"


def check_bounded_memory(learner: Any) -> None:
    """With max_features the state stops growing once windows and sketches are full, with either `evict`.

    A learner whose window is larger than this stream has a method `_fill_early` that makes it smaller.
    """
    for evict in ("oldest", "lightest"):
        model = learner.clone({"max_features": 24, "evict": evict})
        if hasattr(model, "_fill_early"):
            model._fill_early()
        sizes = []
        for t in range(1800):
            x = {f"word {(t * 7 + j * j) % 1000}": 1.0 for j in range(5)} | {"kept": float(t % 2)}
            model.learn_one(x, t % 2)
            if t % 7 == 0:  # making the dict of the features takes longer than learning
                assert len(model.features) <= 24, f"{len(model.features)} features kept under a bound of 24"
            if t in (1500, 1799):
                sizes.append(sum(model.state_bytes().values()))
        assert sizes[1] <= sizes[0], f"{sizes[0]} bytes of state became {sizes[1]} under a bound"
        assert_sound(model, {"kept": 1.0}, {0, 1})
        assert_finite(model)
    wide: list[Pair] = [({f"w {i} {j}": 1.0 for j in range(60)}, i % 2) for i in range(4)]
    model = learn(learner.clone({"max_features": 24}), wide)
    assert len(model.features) <= 24, "one instance wider than the bound broke it"


def has_max_features(learner: Any) -> bool:
    """Return whether the learner has the parameters max_features and evict."""
    return {"max_features", "evict"} <= set(inspect.signature(type(learner)).parameters)


def check_string_columns(learner: Any) -> None:
    """String columns are learned about as well as a column of 0 and 1 for each of their values, made by hand."""
    strings, by_hand = learner.clone(), learner.clone()
    errors, errors_by_hand, total = 0, 0, 0
    for t, (x, y) in enumerate(string_stream()):
        indicators = {f"{column} is {v}": float(v == x[column]) for column in x for v in LEVELS}
        if t >= 100:
            errors += strings.predict_one(x) != y
            errors_by_hand += by_hand.predict_one(indicators) != y
            total += 1
        strings.learn_one(x, y)
        by_hand.learn_one(indicators, y)
    assert abs(errors - errors_by_hand) <= 0.15 * total, (
        f"{errors} of {total} wrong with string columns, {errors_by_hand} with the same columns made by hand"
    )
