"""Files of young learners hold the instances learned; everything else is as if they held the state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.base import files, young
from varifold.checks.material import is_regressor
from varifold.errors import ModelFileError

MAKERS = {
    "auto": varifold.AutoClassifier,
    "best": lambda: varifold.AutoClassifier("best", threshold=0.3),
    "sets": lambda: varifold.AutoClassifier(coverages=(0.8, 0.9)),
    "costs": lambda: varifold.AutoClassifier(costs={"a": 5.0}),
    "log loss": lambda: varifold.AutoClassifier(objective="log_loss", scale="standard"),
    "regressor": varifold.AutoRegressor,
}


def stream(n: int, seed: int = 0) -> Iterator[tuple[dict[Any, Any], str, float]]:
    """Numbers of any size, a negative zero, strings, an int name, a column of both kinds, weights, a late label."""
    rng = random.Random(seed)
    for step in range(n):
        y = rng.choice("ab" if step < 20 else "abc")
        x: dict[Any, Any] = {"t": rng.gauss(ord(y) - 97, 1.0), 7: -0.0, "huge": rng.gauss(0, 1) * 1e200}
        x["both"] = rng.choice([1.5, "text"])
        x["late" if step > 30 else "early"] = rng.choice(["on", "off", y])
        kept = {name: value for name, value in x.items() if rng.random() > 0.3}
        yield kept if step % 17 else {}, y, rng.choice([0.0, 0.5, 1.0, 1.0, 3.0])


def learn(model: Any, instances: Iterator[tuple[dict[Any, Any], str, float]]) -> Any:
    for x, y, w in instances:
        model.learn_one(x, float(ord(y)) if is_regressor(model) else y, w=w)
    return model


def form(data: bytes) -> str:
    return "young" if files.holds_instances(files.decode(data, "test")[1]) else "whole"


@pytest.mark.parametrize("kind", MAKERS)
def test_a_young_learner_goes_on_to_the_bit(kind: str) -> None:
    model = learn(MAKERS[kind](), stream(60))
    data = model.to_bytes()
    assert form(data) == "young"
    again = varifold.from_bytes(data)
    assert again.to_bytes() == data
    for learner in (model, again):
        learn(learner, stream(100, seed=1))
    assert young.same_state(model._engine.dump(), again._engine.dump())


def test_a_file_after_a_hundred_instances_is_small() -> None:
    rng = np.random.default_rng(0)
    model = varifold.AutoClassifier()
    for x in rng.normal(size=(100, 30)).tolist():
        model.learn_one({f"f{j}": value for j, value in enumerate(x)}, x[0] > 0.0)
    assert len(model.to_bytes()) < 30_000


def renamed(model: Any) -> None:
    model.rename({"t": "a name that would have come first"})


def taught_much(model: Any) -> None:
    learn(model, stream(300, seed=2))


def taught_wide(model: Any) -> None:
    for row in range(2):
        model.learn_one({f"w{row} {j}": 1.0 for j in range(young.MOST_VALUES // 2)}, "a")


def many_levels(model: Any) -> None:
    for level in range(60):
        model.learn_one({"city": f"c{level}"}, "a")


@pytest.mark.parametrize("change", [renamed, taught_much, taught_wide, many_levels])
def test_a_state_that_does_not_follow_from_few_instances_is_written_whole(change: Any) -> None:
    model = learn(varifold.AutoClassifier(), stream(60))
    change(model)
    data = model.to_bytes()
    assert form(data) == "whole"
    again = varifold.from_bytes(data)
    assert young.same_state(model._engine.dump(), again._engine.dump())


def test_features_given_up_are_not_learned_again() -> None:
    model = learn(varifold.AutoClassifier(max_features=4), stream(60))
    again = varifold.from_bytes(model.to_bytes())
    assert young.same_state(model._engine.dump(), again._engine.dump())


@pytest.mark.parametrize("model", [varifold.AutoClassifier("fast"), varifold.WindowForest(), varifold.AutoClassifier()])
def test_learners_without_instances_are_written_whole(model: Any) -> None:
    if not isinstance(model, varifold.AutoClassifier) or model.budget == "fast":
        learn(model, stream(10))
    assert form(model.to_bytes()) == "whole"


def more_rows(arrays: files.Arrays) -> None:
    for name in ("sizes", "labels", "weights"):
        arrays[f"instances.{name}"] = np.repeat(arrays[f"instances.{name}"][:1], young.MOST_INSTANCES + 1)
    arrays["instances.sizes"][:] = 0
    arrays["instances.slots"], arrays["instances.values"] = np.zeros(0, np.int32), np.zeros(0)


def no_weight(arrays: files.Arrays) -> None:
    arrays["instances.weights"][3] = 0.0


def other_label(arrays: files.Arrays) -> None:
    arrays["instances.labels"][:] = 0


def fewer_names(arrays: files.Arrays) -> None:
    arrays["instances.slots"][arrays["instances.slots"] == 1] = 2


def no_feature(arrays: files.Arrays) -> None:
    arrays["instances.slots"][:] = np.flatnonzero(arrays["space.kind"][1:] == 2)[0] + 1


def half_a_string(arrays: files.Arrays) -> None:
    arrays["instances.values"][:] = 0.5


def with_state(arrays: files.Arrays) -> None:
    arrays["step"] = np.array([60])


@pytest.mark.parametrize(
    "change", [more_rows, no_weight, other_label, fewer_names, no_feature, half_a_string, with_state]
)
def test_instances_that_do_not_fit_are_refused(change: Any) -> None:
    header, arrays = files.decode(learn(varifold.AutoClassifier(), stream(60)).to_bytes(), "test")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    with pytest.raises(ModelFileError, match="does not hold a whole 'auto'"):
        varifold.from_bytes(files.encode(header, arrays))
