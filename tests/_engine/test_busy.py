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


def beside(learner: Any, call: Any, other: Any, rounds: int = 8) -> list[BaseException]:
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
def test_beside_a_block(method: str, other: str) -> None:
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
    raised = beside(learner, lambda: learner.predict_learn_many(data), calls[other])
    assert raised, "the threads never met"
    assert isinstance(raised[0], RuntimeError)
    assert learner.predict_one(ROWS[0][0]) in {"y0", "y1", "y2"}


def test_save_beside_a_block(tmp_path: Any) -> None:
    learner = varifold.OLVF()
    data = block()
    learner.learn_many(data[:50])
    assert beside(learner, lambda: learner.learn_many(data), lambda: learner.save(tmp_path / "m"))
    learner.save(tmp_path / "m")
    assert varifold.load(tmp_path / "m").steps == learner.steps


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
        learner.learn_many(varifold.Block.from_dicts([{"a": 1.0}]))
    with pytest.raises(DataError):
        learner.run_block(varifold.Block.from_dicts([{"a": 1.0}], ["y"]), np.array([5]))
    learner.learn_one({"a": 1.0}, "y")
    assert learner.predict_one({"a": 1.0}) == "y"
