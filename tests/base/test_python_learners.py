"""A learner that holds a Python learner: pickles and copies keep it, files and bytes reject it and name pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from river import linear_model, naive_bayes

import varifold
from varifold._engine.models.model import Model
from varifold._engine.models.python_rule import PythonModel
from varifold.checks.material import stream
from varifold.errors import ModelFileError


class Wrapped(varifold.VaryingClassifier):
    """A river classifier that a method makes by itself: no parameter shows it."""

    def _model(self) -> Model:
        return PythonModel(naive_bayes.GaussianNB())


MAKERS: dict[str, Callable[[], Any]] = {
    "a parameter": lambda: varifold.OVFIV(base=linear_model.LogisticRegression()),
    "the model": Wrapped,
    "the base learner's model": lambda: varifold.OVFIV(base=Wrapped()),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def learned(make: Callable[[], Any]) -> Any:
    learner = make()
    for x, y in stream(80):
        learner.learn_one(x, y)
    return learner


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_continues_and_shares_nothing(make: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    learner, more = learned(make), stream(60, seed=2)
    again = copied(learner)
    before = [learner.predict_proba_one(x) for x, _ in more]
    for x, y in more:
        again.learn_one(x, y)
    assert [learner.predict_proba_one(x) for x, _ in more] == before
    for x, y in more:
        learner.learn_one(x, y)
    after = [learner.predict_proba_one(x) for x, _ in more]
    assert after == [again.predict_proba_one(x) for x, _ in more]
    assert after != before
    fresh = make()
    fresh.learn_one({}, "no")
    fresh.learn_one({}, "yes")
    assert after != [fresh.predict_proba_one(x) for x, _ in more]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_files_and_bytes_reject_it_and_name_pickle(make: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    varifold.OLVF().save(path)
    good = path.read_bytes()
    learner = learned(make)
    with pytest.raises(ModelFileError, match=r"(GaussianNB|LogisticRegression).*pickle the learner instead"):
        learner.to_bytes()
    with pytest.raises(ModelFileError, match="pickle the learner instead"):
        learner.save(path)
    assert path.read_bytes() == good
