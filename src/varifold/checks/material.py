"""Generate streams for the checks, and inspect a learner without changing it."""

from __future__ import annotations

import hashlib
import math
import pickle
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from varifold.base.learner import is_regressor

Pair = tuple[dict[Any, Any], Any]
LEVELS = ("red", "green", "blue")


def stream(n: int = 120, seed: int = 1, labels: Sequence[Any] = ("no", "yes"), numeric: bool = False) -> list[Pair]:
    """Generate labelled instances whose features appear late, vanish and return; some are strings unless `numeric`."""
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for t in range(n):
        kind = rng.randrange(len(labels))
        x: dict[Any, Any] = {}
        for j in range(4):
            if rng.random() < 0.7:
                x[f"f{j}"] = 10.0**j * (rng.gauss(0, 1) + (1.5 if j % len(labels) == kind else 0.0))
        if t >= n // 3 and rng.random() < 0.6:
            x["late"] = rng.gauss(kind, 1)
        if not n // 2 <= t < 3 * n // 4 and rng.random() < 0.8:
            x[7] = float(kind) + rng.random()
        if not numeric and rng.random() < 0.5:
            x["colour"] = LEVELS[kind % 3] if rng.random() < 0.8 else rng.choice(LEVELS)
        pairs.append((x, labels[kind]))
    return pairs


def stream_of(learner: Any, n: int = 120, **how: Any) -> list[Pair]:
    """Generate `stream` for the learner's task; a regressor's targets depend on the label and the values."""
    pairs = stream(n, **how)
    if not is_regressor(learner):
        return pairs
    labels = sorted({y for _, y in pairs})
    return [(x, 3.0 * labels.index(y) + sum(math.tanh(v) for v in x.values() if type(v) is float)) for x, y in pairs]


def target(learner: Any, k: int) -> Any:
    """Return the first or second label, or a number for a regressor."""
    return float(k) if is_regressor(learner) else ("no", "yes")[k]


def clear_stream(n: int, seed: int = 3, labels: Sequence[Any] = ("no", "yes")) -> list[Pair]:
    """Generate two or more well separated classes over four features, each present in 80 % of the instances."""
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for _ in range(n):
        kind = 0 if rng.random() < 0.55 else rng.randrange(1, len(labels))
        x = {f"g{j}": rng.gauss(3.0 if j % len(labels) == kind else 0.0, 1.0) for j in range(4) if rng.random() < 0.8}
        pairs.append((x, labels[kind]))
    return pairs


def presence_stream() -> list[Pair]:
    """Generate two classes that differ only in which of eight features are present; every value is noise."""
    rng = random.Random(3)
    pairs: list[Pair] = []
    for _ in range(600):
        kind = 0 if rng.random() < 0.55 else 1
        x = {f"p{j}": rng.gauss(0.0, 1.0) for j in range(8) if rng.random() < (0.8 if j % 2 == kind else 0.3)}
        pairs.append((x, ("no", "yes")[kind]))
    return pairs


def string_stream() -> list[Pair]:
    """Generate two classes over six string columns of three values each, with each column present most of the time."""
    rng = random.Random(3)
    pairs: list[Pair] = []
    for _ in range(400):
        kind = rng.randrange(2)
        x = {
            f"c{j}": LEVELS[(j + kind) % 3] if rng.random() < 0.55 else rng.choice(LEVELS)
            for j in range(6)
            if rng.random() < 0.85
        }
        pairs.append((x, ("no", "yes")[kind]))
    return pairs


def learn(learner: Any, pairs: Iterable[Pair]) -> Any:
    """Learn every pair and return the learner."""
    for x, y in pairs:
        learner.learn_one(x, y)
    return learner


def state(learner: Any) -> str:
    """Return a digest of the whole state, equal for learners whose states are equal to the bit."""
    digest = hashlib.sha256()
    for part in _parts(learner):
        digest.update(part)
    return digest.hexdigest()


def _parts(learner: Any) -> Iterable[bytes]:
    by_name = arrays(learner)
    if by_name is None:
        yield pickle.dumps(learner)
        return
    names, labels, _ = learner.__getstate__()["engine"]
    yield repr((names, labels)).encode("utf-8", "backslashreplace")
    for name in sorted(by_name):
        yield f"{name} {by_name[name].dtype} {by_name[name].shape}".encode()
        yield by_name[name].tobytes()


def arrays(learner: Any) -> dict[str, np.ndarray[Any, Any]] | None:
    """Return the arrays in the state of one of this library's learners; None for other learners."""
    pickled = learner.__getstate__() if hasattr(learner, "__getstate__") else None
    if isinstance(pickled, dict) and isinstance(pickled.get("engine"), tuple):
        by_name: dict[str, np.ndarray[Any, Any]] = pickled["engine"][2]
        return by_name
    return None


def predictions(learner: Any, pairs: Iterable[Pair]) -> list[tuple[Any, dict[Any, float]]]:
    """Predict every instance, with probabilities if there are labels."""
    if is_regressor(learner):
        return [(learner.predict_one(x), {}) for x, _ in pairs]
    return [(learner.predict_one(x), learner.predict_proba_one(x)) for x, _ in pairs]


def assert_same(one: Any, other: Any, pairs: Sequence[Pair], what: str) -> None:
    """Assert that both learners predict the same to the last bit, and that their states are equal if readable."""
    for (x, _), a, b in zip(pairs, predictions(one, pairs), predictions(other, pairs), strict=True):
        assert a == b, f"{what}: {a} became {b} on {x}"
    if arrays(one) is not None and arrays(other) is not None:
        differing = [k for k, v in (arrays(one) or {}).items() if _bytes(v) != _bytes((arrays(other) or {}).get(k))]
        assert state(one) == state(other), f"{what}: the states differ in {differing or 'names or labels'}"


def _bytes(array: Any) -> bytes | None:
    return None if array is None else array.tobytes()


def assert_sound(learner: Any, x: dict[Any, Any], labels: Iterable[Any]) -> None:
    """Assert that the prediction of x is one of the labels, with a probability for each of exactly these labels.

    The prediction of a regressor must be a finite number.
    """
    if is_regressor(learner):
        predicted = learner.predict_one(x)
        assert math.isfinite(predicted), f"predict_one({x}) returned {predicted}"
        return
    labels = set(labels)
    label, proba = learner.predict_one(x), learner.predict_proba_one(x)
    assert label in labels, f"predict_one({x}) returned {label!r}, which is none of the labels {labels}"
    assert set(proba) == labels, f"predict_proba_one({x}) names {set(proba)}, the labels learned are {labels}"
    assert all(math.isfinite(p) and 0.0 <= p <= 1.0 for p in proba.values()), f"{proba} are not probabilities"
    assert math.isclose(sum(proba.values()), 1.0, abs_tol=1e-9), f"{proba} sum to {sum(proba.values())}"
    assert proba[label] >= max(proba.values()) - 1e-9, f"the predicted {label!r} is not the most probable of {proba}"


def assert_explains_known(model: Any, x: dict[Any, Any], others: Sequence[str]) -> None:
    """Assert that an explanation names only features of the instance or of the model, and the given others."""
    named = {name for name in model.explain_one(x) if name not in others}
    known = {*x, *model.features}  # a learner may use the inferred value of an absent feature
    if getattr(getattr(model, "traits", None), "uses_absence", False):
        named = {name for name in named if not str(name).endswith((" (absent)", " (present)"))}
    assert named <= known, f"features {named - known} are explained though not known"


def assert_finite(learner: Any) -> None:
    """Assert that no array of the state contains NaN or infinity."""
    for name, array in (arrays(learner) or {}).items():
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), f"the state array {name!r} holds {array[~np.isfinite(array)][0]}"
