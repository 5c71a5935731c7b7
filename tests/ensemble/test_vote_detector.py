"""VoteDetector: scores, alarms and explanations are those of its detectors together; files, bad input."""

from __future__ import annotations

import copy
import math
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.errors import ParameterError, VarifoldError


def rows(count: int, seed: int = 0) -> list[dict[Any, Any]]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        a = rng.gauss(0.0, 1.0)
        found.append({"a": a, "b": a + rng.gauss(0.0, 0.2), "c": rng.gauss(0.0, 1.0), "state": rng.choice("xyz")})
    return found


def vote(**params: Any) -> varifold.VoteDetector:
    return varifold.VoteDetector([varifold.CopulaDetector(), varifold.PresenceDetector()], **params)


def test_the_score_is_the_mean_surprise() -> None:
    model = vote()
    alone = [varifold.CopulaDetector(), varifold.PresenceDetector()]
    for x in rows(300):
        expected = sum(-math.log(one.p_value_one(x)) for one in alone) / 2
        assert model.score_one(x) == pytest.approx(expected, rel=1e-12)
        model.learn_one(x)
        for one in alone:
            one.learn_one(x)
    assert model.steps == 300
    for x in ({"a": 2.0, "b": -2.0}, {"a": 0.1, "b": 0.1, "c": 0.0, "state": "x"}, {}):
        parts = model.explain_one(x)
        assert math.fsum(parts.values()) == pytest.approx(model.score_one(x), abs=1e-12)
    assert next(iter(model.explain_one({"a": 0.1, "b": 0.1, "state": "x"}))) == "c (absent)"


def test_the_rate_of_alarms_is_kept() -> None:
    model = vote(rate=0.05)
    alarms = []
    for x in rows(4000, 2):
        alarms.append(model.is_anomaly_one(x))
        model.learn_one(x)
    assert 0.04 < np.mean(alarms[500:]) < 0.06


def test_files_pickles_copies_and_clones(tmp_path: Path) -> None:
    model = vote(rate=0.1)
    model.learn_many(rows(200))
    model.save(tmp_path / "vote.model")
    for other in (varifold.load(tmp_path / "vote.model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        twin = copy.deepcopy(model)
        assert (other.rate, other.steps) == (0.1, 200)
        for x in rows(50, 3):
            assert other.score_and_p_value_one(x) == (twin.score_one(x), twin.p_value_one(x))
            other.learn_one(x)
            twin.learn_one(x)
    assert model.steps == 200
    blank = model.clone()
    assert (blank.steps, blank.rate, blank.p_value_one({"a": 1.0})) == (0, 0.1, 1.0)


def test_a_rejected_instance_changes_nothing() -> None:
    model = vote()
    model.learn_many(rows(100))
    before = model.to_bytes()
    for bad in ({"a": math.inf}, {"a": [1]}):
        with pytest.raises(VarifoldError):
            model.learn_one(bad)
        with pytest.raises(VarifoldError):
            model.learn_many([*rows(3), bad])
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    "learners", [[], 3, None, [varifold.AROW()], [varifold.TailDetector], [varifold.TailDetector()] * 2]
)
def test_what_is_no_list_of_detectors_is_rejected(learners: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a list of detectors, each one once\. Got"):
        varifold.VoteDetector(learners)
