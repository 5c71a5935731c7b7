"""Load model files whose checksum is right and whose content is not: `python -m tests.base.crafted NAME...`.

Each array in turn is left out, cut short, given another type, or filled with numbers that cannot be. The file must be
rejected in the library's words; only where nothing but the numbers is wrong may it be taken, if the learner then goes
on to finite predictions. One line a file goes to stdout before it is loaded: after a crash the last one names it.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import varifold
from varifold.base import files
from varifold.base.learner import is_detector
from varifold.checks.detection import Scoring
from varifold.checks.material import is_regressor, predictions
from varifold.errors import ModelFileError

Array = np.ndarray[Any, Any]


def instances(n: int, seed: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Three labels, six numbers of which half are replaced by others on the way, and a column of strings."""
    rng = random.Random(seed)
    for step in range(n):
        born = 3 if step >= n // 2 else 0
        x: dict[str, Any] = {f"f{j}": rng.gauss(0, 1) for j in range(born, 6 + born) if rng.random() < 0.9}
        if rng.random() < 0.6:
            x["colour"] = rng.choice(("red", "blue", "green"))
        yield x, rng.choice(("a", "b", "c"))


def target(learner: Any, y: str) -> Any:
    """The label, or a number for a regressor."""
    return float(ord(y)) if is_regressor(learner) else y


def misshapen(array: Array) -> Iterator[tuple[str, Array | None]]:
    """What is never taken."""
    yield "left out", None
    yield "deeper", array[..., None]
    yield "of another type", array.astype(np.int64 if array.dtype.kind == "f" else np.float64)
    if array.size:
        yield "cut short", array[:-1]
    if array.size and array.dtype.kind == "f":
        yield "all NaN", np.full_like(array, math.nan)


def absurd(array: Array) -> Iterator[tuple[str, Array | None]]:
    """What may be taken where it does no harm: one row more, or numbers that are something else."""
    yield "longer", np.concatenate([array, np.zeros((1, *array.shape[1:]), dtype=array.dtype)])
    if array.size and array.dtype.kind != "f":
        info = np.iinfo(array.dtype)
        for value in {max(-1, info.min), min(10**6, info.max), info.max}:
            yield f"all {value}", np.full_like(array, value)
        yield "one more", array + 1


def outcome(data: bytes) -> str:
    """Load a file's bytes (no disk: a thousand synced files take longer than all else) and describe what happens."""
    try:
        learner = varifold.from_bytes(data)
    except ModelFileError:
        return "rejected"
    learner = Scoring(learner) if is_detector(learner) else learner
    for x, y in instances(6, 1):
        ((found, proba),) = predictions(learner, [(x, y)])
        learner.learn_one(x, target(learner, y))
        if not all(math.isfinite(p) for p in ([found] if is_regressor(learner) else proba.values())):
            return f"taken, predictions {found} {proba}"
    return "accepted"


def try_all(name: str, params: dict[str, Any], tried: set[str]) -> None:
    """Corrupt each array of the learner that was not tried under other parameters."""
    detects = name in varifold.detectors
    learner = Scoring(varifold.detectors[name](**params)) if detects else varifold.models[name](**params)
    for x, y in instances(80, 0):
        learner.learn_one(x, target(learner, y))
    header, arrays = files.decode(learner.to_bytes(), "")
    assert outcome(learner.to_bytes()) == "accepted"
    for key in sorted(arrays.keys() - tried):
        array = arrays[key]
        tried.add(key)
        for allowed, changes in (({"rejected"}, misshapen(array)), ({"rejected", "accepted"}, absurd(array))):
            for how, changed in changes:
                rest = {k: a for k, a in arrays.items() if k != key}
                print(name, params, key, array.shape, how, flush=True)
                found = outcome(files.encode(header, rest if changed is None else {**rest, key: changed}))
                if found not in allowed:
                    sys.exit(f"{name} {params} {key} {how}: {found}")


if __name__ == "__main__":
    for method in sys.argv[1:]:
        done: set[str] = set()
        known: Any = varifold.detectors if method in varifold.detectors else varifold.models
        for settings in known[method]._unit_test_params():
            try_all(method, settings, done)
