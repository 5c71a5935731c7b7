"""A learner's life in any order: learn, predict, reject, rename, evict, copy, pickle, save, load, merge.

Hypothesis chooses the calls. After each of them a twin that made the same accepted calls is equal to the bit; rejected
calls, and those that only look, change nothing. Seven methods with the other tests, all of them with `make fuzz`.
"""

from __future__ import annotations

import copy
import math
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import varifold
from tests.fuzz.test_fuzz import settings_of
from varifold.checks.material import is_regressor, state
from varifold.errors import VarifoldError

SOME = ("arow", "olvf", "gaussiannb", "orf3v", "ovfiv", "copularegressor", "windowforestregressor")
ALL_FROM = 100_000  # instances requested, from which on every method lives

NAMES = st.sampled_from(["a", "b", "c", "d", "kind", "kind=x", "(intercept)", 1, "1"])
NUMBERS = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([0.0, 1.0, 1e150, -1e150, 1e-310, 1e16]))
VALUES = st.one_of(NUMBERS, NUMBERS, st.sampled_from(["x", "y", ""]), st.none())
INSTANCES = st.dictionaries(NAMES, VALUES, max_size=5)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.0, 0.5, 1e-16, 1e9])
TARGETS = st.one_of(NUMBERS, NUMBERS, st.none())
LABELS = st.sampled_from(["p", "q", "r", None])
BAD: list[tuple[Any, Any, Any]] = [
    ({"a": math.inf}, None, 1.0), ({"new": 1.0, "a": b"1"}, None, 1.0), ({2.5: 1.0}, None, 1.0), (5, None, 1.0),
    ({"new": 1.0}, "no target", 1.0), ({"new": 1.0}, None, math.nan), ({"new": 1.0}, None, -1.0),
    ({"new": "x", "new=x": 1.0}, None, 1.0),
]  # fmt: skip


class Life(RuleBasedStateMachine):
    name = ""

    def __init__(self) -> None:
        super().__init__()
        self.learner: Any = None
        self.twin: Any = None

    @initialize(seed=st.integers(0, 30))
    def begin(self, seed: int) -> None:
        self.learner = settings_of(self.name, seed)
        self.twin = self.learner.clone()

    def target(self, data: Any) -> Any:
        return data.draw(TARGETS if is_regressor(self.learner) else LABELS)

    def call(self, method: str, *given: Any) -> bool:
        """Make a call; if it is accepted, the twin must accept it too, else nothing may have changed."""
        before = state(self.learner)
        try:
            getattr(self.learner, method)(*given)
        except VarifoldError:
            assert state(self.learner) == before, f"{method} was rejected and changed the state"
            return False
        getattr(self.twin, method)(*given)
        return True

    @rule(x=INSTANCES, w=WEIGHTS, data=st.data())
    def learn(self, x: dict[Any, Any], w: float, data: Any) -> None:
        self.call("learn_one", x, self.target(data), w)

    @rule(rows=st.lists(INSTANCES, min_size=1, max_size=8), data=st.data())
    def learn_many(self, rows: list[dict[Any, Any]], data: Any) -> None:
        """The block of the one is the instances of the other."""
        targets = [self.target(data) for _ in rows]
        before = state(self.learner)
        try:
            self.learner.learn_many(rows, targets)
        except VarifoldError:
            assert state(self.learner) == before, "a rejected block changed the state"
            return
        for x, y in zip(rows, targets, strict=True):
            self.twin.learn_one(x, y)

    @rule(bad=st.sampled_from(BAD), data=st.data())
    def reject(self, bad: tuple[Any, Any, Any], data: Any) -> None:
        x, y, w = bad
        y = self.target(data) if y is None else y if is_regressor(self.learner) else ["no label"]
        assert not self.call("learn_one", x, y, w), f"{bad} was accepted"

    @rule(x=INSTANCES)
    def look(self, x: dict[Any, Any]) -> None:
        before = state(self.learner)
        try:
            self.learner.predict_one(x)
            self.learner.explain_one(x)
            self.learner.predict_many([x, {}])
            repr((self.learner.features, self.learner.traits, self.learner.to_bytes()))
            if not is_regressor(self.learner):
                self.learner.predict_proba_one(x)
        except VarifoldError:
            assert x.keys() & {"kind", "kind=x", 1, "1"}, "names that cannot clash were rejected"
        assert state(self.learner) == before, "looking changed the state"

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: Any, new: Any) -> None:
        self.call("rename", {old: new})

    @rule(way=st.sampled_from(["copy", "pickle", "bytes", "file"]), swap=st.booleans())
    def copied(self, way: str, swap: bool) -> None:
        """Continue with a copy, of the learner or in place of its twin."""
        if way == "copy":
            other = copy.deepcopy(self.learner)
        elif way == "pickle":
            other = pickle.loads(pickle.dumps(self.learner))
        elif way == "bytes":
            other = varifold.from_bytes(self.learner.to_bytes())
        else:
            with tempfile.TemporaryDirectory() as folder:
                self.learner.save(Path(folder) / "model")
                other = varifold.load(Path(folder) / "model")
        if swap:
            self.learner, self.twin = other, self.learner
        else:
            self.twin = other

    @rule()
    def clone(self) -> None:
        assert self.learner.clone().steps == 0

    @precondition(lambda self: self.learner.steps > 0)
    @rule(x=INSTANCES, data=st.data())
    def merge(self, x: dict[Any, Any], data: Any) -> None:
        """Merge with a learner that knows other features; the parts stay as they are."""
        other = self.learner.clone()
        try:
            other.learn_one({**x, "z": 1.0}, self.target(data))
        except VarifoldError:
            return
        before = state(self.learner), state(other)
        try:
            merged = varifold.merge([self.learner, other])
            twin = varifold.merge([self.twin, other])
        except VarifoldError:
            merged = None
        assert (state(self.learner), state(other)) == before, "merging changed a part"
        if merged is not None:
            self.learner, self.twin = merged, twin  # what was merged can also be saved and go on

    @invariant()
    def equal(self) -> None:
        if self.learner is not None:
            assert state(self.learner) == state(self.twin), "a copy went another way"
            assert len(self.learner.features) <= (self.learner.max_features or math.inf)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = metafunc.config.getoption("--instances") >= ALL_FROM
    metafunc.parametrize("name", list(varifold.models) if every else SOME)


def test_any_order_of_calls(name: str, request: pytest.FixtureRequest) -> None:
    instances = request.config.getoption("--instances")
    kind = type(f"Life of {name}", (Life,), {"name": name})
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=12 if instances < ALL_FROM else 40,
            stateful_step_count=15 if instances < ALL_FROM else 40,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],  # shrinking takes minutes; a life is short
            suppress_health_check=list(HealthCheck),
        ),
    )
