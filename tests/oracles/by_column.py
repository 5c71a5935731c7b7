"""Compare learners with oracles whose rows map a column's key to its value.

A number of the column with slot c has the key 2 c, a string the key 2 c + 1 and the slot of its level as value (0 once
that level was evicted). Slots are the engine's, so that random draws select the same entries.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from varifold.base.learner import is_regressor

Row = dict[int, float]
Labelled = list[tuple[dict[str, Any], Any, float]]


def stream(n: int, seed: int = 0, labels: str = "ab") -> Labelled:
    """Generate numbers, string and mixed columns, informative absence, late features and late labels."""
    rng = random.Random(seed)
    found: Labelled = []
    for t in range(n):
        k = rng.randrange(len(labels) if t > n // 2 else 2)
        x: dict[str, Any] = {
            "normal": rng.gauss(k, 1.0),
            "count": float(rng.randrange(3 + k)),
            "constant": 7.0,
            "city": rng.choice(["rome", "oslo", "bern"]) if rng.random() < 0.5 else ["rome", "lima", "oslo"][k % 3],
            "mixed": rng.gauss(-k, 1.0) if rng.random() < 0.5 else rng.choice(["low", "high"]),
        }
        x = {name: v for name, v in x.items() if rng.random() < (0.9 if k else 0.7)}
        if t > n // 4 and rng.random() < 0.5:
            x["late"] = rng.gauss(k, 1.0)
        if rng.random() < 0.05:
            x[f"rare {rng.randrange(6)}"] = rng.choice(["p", "q", rng.random()])
        found.append((x if rng.random() > 0.03 else {}, labels[k], rng.choice([0.5, 1.0, 2.5])))
    return found


def row_of(x: dict[str, Any], slot_of: Callable[[str], int]) -> Row:
    """Convert an instance to a row; features without a slot are left out."""
    row: Row = {}
    for name, value in x.items():
        if isinstance(value, str):
            if slot_of(f"{name}={value}") > 0:
                row[2 * slot_of(name) + 1] = slot_of(f"{name}={value}")
        elif slot_of(name) > 0:
            row[2 * slot_of(name)] = float(value)
    return dict(sorted(row.items()))


def follow(model: Any, oracle: Any, rows: Labelled, tolerance: float = 1e-9) -> None:
    """Learn the rows with both and compare them at every step; an oracle may have no scores (None) for a row."""
    slot_of = model._engine.space.id_of
    places: dict[str, tuple[int, int | None, str]] = {}
    for t, (x, y, w) in enumerate(rows):
        if t:
            row = row_of({n: v for n, v in x.items() if name_of(n, v) in places}, slot_of)
            expected = oracle.scores(row)
            if expected is not None:
                found = [model.predict_one(x)] if is_regressor(model) else list(model.margins_one(x).values())
                assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), t
        model.learn_one(x, y, w)
        features = model.features
        evicted = {name: places.pop(name) for name in places.keys() - features.keys()}
        for key, level, column in evicted.values():
            oracle.forget(key, level)
            if not any(other == column or other.startswith(f"{column}=") for other in places):
                oracle.forget(key | 1, None)  # the column no longer exists
        places |= {name: place_of(model, name) for name in features.keys() - places.keys()}
        oracle.learn(row_of({n: v for n, v in x.items() if name_of(n, v) in places}, slot_of), y, w)


def name_of(name: str, value: Any) -> str:
    """Return the name of a value's feature: the column, or the level of a string."""
    return f"{name}={value}" if isinstance(value, str) else name


def place_of(model: Any, name: Any) -> tuple[int, int | None, str]:
    """Return the key of a feature in the oracle's rows, the slot of a level, and the name of its column."""
    slot = model._engine.space.id_of(name)
    column, equals, _ = name.partition("=")
    return (2 * model._engine.space.id_of(column) + 1, slot, column) if equals else (2 * slot, None, name)
