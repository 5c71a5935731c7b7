"""Python's own allocations fail, each once: whatever was forgotten by then, the learner can be saved and goes on."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import pytest

import varifold
from varifold.errors import OutOfMemoryError

_testcapi: Any = pytest.importorskip("_testcapi", reason="makes allocations of CPython fail")


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("label", [0, "new"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("arow", {}), ("arow", {"max_features": 6}), ("ovfiv", {"max_features": 6, "evict": "lightest"}),
        ("gaussiannb", {"max_features": 6, "coverages": (0.9,)}),
    ],
)  # fmt: skip
def test_a_learner_can_be_saved_and_goes_on(name: str, params: dict[str, Any], label: Any) -> None:
    learner, rng = varifold.models[name](**params), random.Random(3)
    for i in range(60):
        learner.learn_one({f"f{rng.randrange(40)}": 1.0, "a": float(i), "k": "xyz"[i % 3]}, i % 2)
    begun = learner.__getstate__()
    x = {"n0": 1.0, "n1": 1.0, "a": 2.0, "k": "new", "z": "q"}
    failures = 0
    for k in range(1, 80):
        learner.__setstate__(begun)
        call, error = learner._engine.learn_one, None
        _testcapi.set_nomemory(k, k + 1)
        try:
            call(x, label)
        except OutOfMemoryError as caught:
            error = caught
        finally:
            _testcapi.remove_mem_hooks()
        failures += error is not None
        varifold.from_bytes(learner.to_bytes())
        learner.learn_one(x, label)
        learner.rename({"a": "b"})
        learner.predict_proba_one(x)
        varifold.from_bytes(learner.to_bytes())
    assert failures > 5
