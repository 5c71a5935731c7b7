"""A learner is for one call at a time: a second one gets an error, never memory that is being changed."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.errors import BusyLearnerError, DataError

ROWS = [({f"f{i}": float(i + j % 3) for i in range(j % 20, j % 20 + 12)}, f"y{j % 3}") for j in range(1_500)]


def block() -> Any:
    return varifold.Block.from_dicts([x for x, _ in ROWS], [y for _, y in ROWS])


def next_to(learner: Any, call: Any, other: Any, rounds: int = 8) -> list[BaseException]:
    """What `other` raises from two threads while `call` runs again and again in a third."""
    raised: list[BaseException] = []
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            try:
                other()
            except BusyLearnerError as error:
                raised.append(error)

    threads = [threading.Thread(target=again) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        try:
            call()
        except BusyLearnerError as error:
            raised.append(error)
    stop.set()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("method", ["olvf", "gaussiannb", "orf3v"])
@pytest.mark.parametrize("other", ["predict_many", "learn_many", "predict_one", "features", "pickle", "margins_one"])
def test_next_to_a_block(method: str, other: str) -> None:
    learner = varifold.models[method]()
    data = block()
    learner.learn_many(data[:50])
    calls = {
        "predict_many": lambda: learner.predict_many(data),
        "learn_many": lambda: learner.learn_many(data),
        "predict_one": lambda: learner.predict_one(ROWS[0][0]),
        "features": lambda: learner.features,
        "pickle": lambda: pickle.dumps(learner),
        "margins_one": lambda: learner.margins_one(ROWS[1][0]),
    }
    for error in next_to(learner, lambda: learner.predict_learn_many(data), calls[other]):
        assert isinstance(error, RuntimeError)
    assert learner.predict_one(ROWS[0][0]) in {"y0", "y1", "y2"}


class Slow(float):
    """A float whose reading waits until it is let go."""

    reading: threading.Event
    go: threading.Event

    def __float__(self) -> float:
        self.reading.set()
        assert self.go.wait(30)
        return 1.0


def others(learner: Any, path: Any) -> dict[str, Any]:
    x = {"a": 1.0}
    data = varifold.Block.from_dicts([x], ["y"])
    return {
        "learn_one": lambda: learner.learn_one(x, "y"),
        "predict_one": lambda: learner.predict_one(x),
        "predict_proba_one": lambda: learner.predict_proba_one(x),
        "margins_one": lambda: learner.margins_one(x),
        "explain_one": lambda: learner.explain_one(x),
        "learn_many": lambda: learner.learn_many(data),
        "predict_many": lambda: learner.predict_many(data),
        "features": lambda: learner.features,
        "traits": lambda: learner.traits,
        "state_bytes": lambda: learner.state_bytes(),
        "report": lambda: learner.report(),
        "column_importances": lambda: learner.column_importances(data),
        "save": lambda: learner.save(path),
        "to_bytes": lambda: learner.to_bytes(),
        "pickle": lambda: pickle.dumps(learner),
        "copy": lambda: copy.deepcopy(learner),
    }


@pytest.mark.parametrize("inside", ["learn_one", "predict_one"])
def test_every_call_next_to_another_is_rejected(inside: str, tmp_path: Any) -> None:
    learner = varifold.AutoClassifier(budget="fast")
    learner.learn_one({"a": 1.0}, "y")
    value = Slow(2.0)
    value.reading, value.go = threading.Event(), threading.Event()
    x = {"a": value}
    call = (lambda: learner.learn_one(x, "z")) if inside == "learn_one" else (lambda: learner.predict_one(x))
    thread = threading.Thread(target=call)
    thread.start()
    assert value.reading.wait(30)
    for name, other in others(learner, tmp_path / "m").items():
        with pytest.raises(BusyLearnerError):
            other()
        assert not (tmp_path / "m").exists(), name
    value.go.set()
    thread.join()
    for other in others(learner, tmp_path / "m").values():
        other()
    assert varifold.load(tmp_path / "m").predict_one({"a": 1.0}) == learner.predict_one({"a": 1.0})


def test_a_look_inside_keeps_other_threads_out() -> None:
    learner = varifold.OLVF()
    learner.learn_one({"a": 1.0}, "y")
    raised: list[BaseException] = []

    def learn() -> None:
        try:
            learner.learn_one({"a": 1.0}, "y")
        except BusyLearnerError as error:
            raised.append(error)

    with learner._engine:
        assert learner.predict_one({"a": 1.0}) == "y"  # the same thread may
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join()
    assert len(raised) == 1
    assert learner.steps == 1


class Reentrant(float):
    """A float whose reading uses the learner that reads it."""

    learner: Any
    call: str

    def __float__(self) -> float:
        if self.call == "learn_one":
            self.learner.learn_one({"z": 1.0}, "b")
        else:
            getattr(self.learner, self.call)({"z": 1.0})
        return 1.0


@pytest.mark.parametrize("call", ["predict_one", "predict_proba_one", "learn_one", "explain_one"])
def test_reentry_from_a_value(call: str) -> None:
    learner = varifold.AROW()
    learner.learn_one({"a": 1.0}, "a")
    twin = copy.deepcopy(learner)
    value = Reentrant(2.0)
    value.learner, value.call = learner, call
    with pytest.raises(BusyLearnerError):
        learner.learn_one({"a": value, "b": 2.0}, "b")
    assert learner.steps == 1
    for model in (learner, twin):
        model.learn_one({"a": 2.0}, "b")
    assert learner.margins_one({"a": 1.0}) == twin.margins_one({"a": 1.0})


def test_the_claim_is_cleared_on_every_exit() -> None:
    learner = varifold.OLVF()
    wrong: list[Any] = [{"a": float("inf")}, {1.5: 1.0}, {"a": object()}, 7]
    for x in wrong:
        with pytest.raises(varifold.errors.VarifoldError):
            learner.learn_one(x, "y")
        with pytest.raises(varifold.errors.VarifoldError):
            learner.predict_one(x)
    with pytest.raises(DataError):
        learner.learn_many(varifold.to_block([{"a": 1.0}], [1.0], numeric=True))
    with pytest.raises(DataError):
        learner.run_block(varifold.Block.from_dicts([{"a": 1.0}], ["y"]), np.array([5]))
    learner.learn_one({"a": 1.0}, "y")
    assert learner.predict_one({"a": 1.0}) == "y"
