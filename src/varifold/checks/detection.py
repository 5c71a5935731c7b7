"""Checks of anomaly detectors: scores before and after the first instance, explanations, p-values, alarms.

A detector has the shared properties of a learner, too: `Scoring` presents it as one whose predictions are the scores.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import Any, Self

from river import base as river_base

from varifold.checks.material import assert_finite, state, stream


class Scoring(river_base.Regressor):
    """A detector in the form of a regressor that ignores targets and predicts scores."""

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a clone of the detector."""
        return type(self)(self.detector.clone(new_params, include_attributes))

    def learn_one(self, x: dict[Any, Any], y: Any = None) -> None:
        """Learn the instance; the target is ignored."""
        self.detector.learn_one(x)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the score."""
        score: float = self.detector.score_one(x)
        return score

    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn instances; targets are ignored."""
        self.detector.learn_many(X)

    def predict_many(self, X: Any) -> Any:
        """Return the scores."""
        return self.detector.score_many(X)

    @property
    def features(self) -> Any:
        """Return the features of the detector."""
        return self.detector.features

    def state_bytes(self) -> Any:
        """Return the bytes of its state."""
        return self.detector.state_bytes()

    def save(self, path: Any) -> None:
        """Save it."""
        self.detector.save(path)

    def to_bytes(self) -> bytes:
        """Encode it."""
        data: bytes = self.detector.to_bytes()
        return data

    def load(self, path: Any) -> Self:
        """Load another one of its class."""
        return type(self)(type(self.detector).load(path))

    def from_bytes(self, data: bytes) -> Self:
        """Decode another one of its class."""
        return type(self)(type(self.detector).from_bytes(data))

    def _get_params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.detector._get_params()
        return params

    def __getstate__(self) -> Any:
        return self.detector.__getstate__()

    def __reduce__(self) -> Any:
        return type(self), (self.detector,)


def of_detector(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Turn a check of learners into one of detectors."""

    @functools.wraps(check)
    def checked(detector: Any) -> None:
        check(Scoring(detector))

    return checked


def check_cold_start(detector: Any) -> None:
    """Before any instance was learned the score is 0 and the p-value 1."""
    model = detector.clone()
    for x in ({}, {"a": 1.0}, {"a": None, "b": "level"}):
        score = model.score_one(x)
        assert score == 0.0, f"score_one({x}) before any instance returned {score!r}, not 0"
        if hasattr(model, "p_value_one"):
            assert model.p_value_one(x) == 1.0, f"p_value_one({x}) before any instance is not 1"


def check_plain_scores(detector: Any) -> None:
    """Scores and p-values are finite Python floats at every step; an instance may be empty."""
    model = detector.clone()
    for t, (x, _) in enumerate(stream(120)):
        x = {} if t % 7 == 3 else x
        scores = {"score_one": model.score_one(x)}
        if hasattr(model, "p_value_one"):
            scores["p_value_one"] = model.p_value_one(x)
            assert 0.0 < scores["p_value_one"] <= 1.0, f"p_value_one({x}) returned {scores['p_value_one']}"
            if hasattr(model, "score_and_p_value_one"):
                both = model.score_and_p_value_one(x)
                assert both == tuple(scores.values()), f"score_and_p_value_one({x}) returned {both}, not {scores}"
        for call, value in scores.items():
            assert type(value) is float, f"{call}({x}) returned a {type(value).__name__}"
            assert math.isfinite(value), f"{call}({x}) returned {value}"
        model.learn_one(x)
    assert_finite(model)


def check_score_is_pure(detector: Any) -> None:
    """Scores, p-values and explanations change nothing, whatever the instance holds."""
    model = detector.clone()
    for t, (x, _) in enumerate(stream(60)):
        model.learn_one(x)
        before = state(model) if t % 10 == 0 else None
        for call in ("score_one", "p_value_one", "is_anomaly_one", "explain_one"):
            if hasattr(model, call):
                getattr(model, call)({**x, "unknown": 1.0})
        assert before is None or state(model) == before, "scoring changed the state"


def check_explanation(detector: Any) -> None:
    """Contributions sum to the score."""
    model = detector.clone()
    for t, (x, _) in enumerate(stream(300)):
        model.learn_one(x)
        if t % 7:
            continue
        for instance in (x, {}, {"f0": 1e6, **x}):
            score, total = model.score_one(instance), math.fsum(model.explain_one(instance).values())
            near = math.isclose(total, score, rel_tol=1e-9, abs_tol=1e-9)
            assert near, f"{total} explains a score of {score} of {instance}"


def check_detects(detector: Any) -> None:
    """Values far from all others get larger scores than usual ones, if values are used; else unusual presence does."""
    model = detector.clone()
    uses_values = getattr(getattr(model, "traits", None), "uses_values", True)
    rng = random.Random(3)
    usual: list[float] = []
    unusual: list[float] = []
    for t in range(900):
        x = {f"g{j}": rng.gauss(0.0, 1.0) for j in range(4)}
        odd = t >= 400 and t % 25 == 0
        if odd and uses_values:
            x = {name: value + 12.0 for name, value in x.items()}
        elif odd:
            del x["g1"], x["g2"]
        if t >= 400:
            (unusual if odd else usual).append(model.score_one(x))
        model.learn_one(x)
    above = sum(a > b for a in unusual for b in usual) / (len(usual) * len(unusual))
    assert above > 0.9, f"of pairs of an unusual and a usual instance {above:.0%} are in the right order"


def check_apis(detector: Any) -> None:
    """`score_learn_many`, in blocks of any size, gives the scores and the state of `score_one` and `learn_one`."""
    rows = [x for x, _ in stream(200)] + [{}]
    one = detector.clone()
    expected = []
    for x in rows:
        expected.append(one.score_one(x))
        one.learn_one(x)
    for size in (201, 37):
        many = detector.clone()
        scores = [s for lo in range(0, 201, size) for s in many.score_learn_many(rows[lo : lo + size])]
        assert scores == expected, "score_learn_many and score_one differ"
        assert state(many) == state(one), f"score_learn_many in blocks of {size} leaves another state"


def check_alarms(detector: Any) -> None:
    """Of 3,000 instances of one distribution about the requested share is an anomaly, from the 1,000th on."""
    model = detector.clone()
    rng = random.Random(11)
    alarms = 0
    for t in range(3000):
        x = {f"g{j}": rng.gauss(0.0, 1.0) for j in range(3) if rng.random() < 0.8}
        alarms += t >= 1000 and model.is_anomaly_one(x, rate=0.05)
        model.learn_one(x)
    assert 70 <= alarms <= 130, f"{alarms} alarms of 2,000 instances at a rate of .05"
