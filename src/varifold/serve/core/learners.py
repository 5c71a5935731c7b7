"""Learners as the server uses them: made by name, predicting for JSON, stored as bytes."""

from __future__ import annotations

import base64
import hashlib
import inspect
import math
from collections.abc import Mapping
from typing import Any

from varifold import base
from varifold.base.classifier import VaryingClassifier
from varifold.base.coverages import coverage_key
from varifold.base.json_text import write_json
from varifold.base.learner import is_detector, is_regressor
from varifold.base.nearest import nearest
from varifold.base.registry import detectors, models
from varifold.ensemble import per_key
from varifold.ensemble.vote_detector import METHOD as VOTE_DETECTOR
from varifold.ensemble.vote_detector import VoteDetector
from varifold.errors import ModelFileError
from varifold.serve.core.errors import RejectedError

__all__ = [
    "Instance",
    "digest",
    "fitting_memo",
    "from_bytes",
    "kind_of",
    "learns_labels",
    "loss",
    "make",
    "memo",
    "predict",
    "to_bytes",
]

_MOST_IN_MEMORY = 10_000
"""Most learners by key in memory, as far as the budget of memory allows; loading one takes up to 5 ms."""

_MOST_NAMED = 5
"""Most features named for an anomaly."""

_LARGEST_LOSS = 1e100

Instance = Mapping[str, Any]
"""Features by name."""


def make(method: str, params: Mapping[str, Any], key: str | None = None, max_keys: int | None = None) -> Any:
    """Make a learner of a registered method; a name chosen by a client never causes an import."""
    if method == VOTE_DETECTOR:
        return _make_vote(params, key)
    registry: Mapping[str, type[Any]] = detectors if method in detectors else models
    if method not in registry:
        raise RejectedError(f"there is no method {method!r}{nearest(method, [*models, *detectors, VOTE_DETECTOR])}")
    accepted = inspect.signature(registry[method]).parameters
    for name in params:
        if name not in accepted:
            raise RejectedError(f"{method} has no parameter {name!r}{nearest(name, list(accepted))}")
    learner = registry[method](**params)
    if key is None:
        return learner
    keyed = per_key.by_key(learner, key, max_keys)
    keyed.most = _MOST_IN_MEMORY
    return keyed


def _make_vote(params: Mapping[str, Any], key: str | None) -> Any:
    """Make a vote of detectors, each given by its method, or by an object with its method and parameters."""
    given = params.get("learners")
    if not isinstance(given, list) or not given or set(params) - {"learners", "rate"}:
        raise RejectedError(
            f'the params of a {VOTE_DETECTOR} are {{"learners": ["copuladetector", ...], "rate": 0.01}}; a learner is '
            'a method, or {"method": ..., "params": {...}}'
        )
    if key is not None:
        raise RejectedError(f"a {VOTE_DETECTOR} has no learners by key; make a model of one detector with key")
    made = []
    for one in given:
        spec = {"method": one} if isinstance(one, str) else one
        if not isinstance(spec, dict) or set(spec) - {"method", "params"} or spec.get("method") not in detectors:
            raise RejectedError(f"learners of a {VOTE_DETECTOR} holds {str(one)[:60]!r}, which is no detector")
        if not isinstance(spec.get("params", {}), dict):
            raise RejectedError(f"the params of {spec['method']} are not an object")
        made.append(make(spec["method"], spec.get("params", {})))
    return VoteDetector(made, **{name: value for name, value in params.items() if name == "rate"})


def learns_labels(learner: Any) -> bool:
    """Return whether a detector learns from labels."""
    return hasattr(learner.model if isinstance(learner, per_key.KeyedLearner) else learner, "label_one")


def from_bytes(data: bytes) -> Any:
    """Load the learner in a model file; reject a damaged file."""
    try:
        return base.from_bytes(data)
    except ModelFileError as error:
        raise RejectedError(str(error)) from error


def to_bytes(learner: Any) -> bytes:
    """Return the content of the learner's model file."""
    data: bytes = learner.to_bytes()
    return data


def digest(learner: Any) -> str:
    """Return the SHA-256 of the learner's complete state: the content of its model file."""
    return hashlib.sha256(to_bytes(learner)).hexdigest()


def predict(learner: Any, x: Instance) -> dict[str, Any]:
    """Predict an instance: the label, or a regressor's number, and probabilities if the learner has them.

    A learner with coverages adds its intervals or sets by coverage; infinite bounds are None. A detector returns score,
    p-value, whether that is an alarm at its rate, and if so the features that contribute most.
    """
    if is_detector(learner):
        return _score(learner, x)
    return {**_label(learner, x), **_uncertainty(learner, x)}


def kind_of(learner: Any) -> str:
    """Return what a learner does, and whether there is one per key."""
    kind = "detector" if is_detector(learner) else "regressor" if is_regressor(learner) else "classifier"
    return kind if getattr(learner, "key", None) is None else f"{kind} by key"


def memo(learner: Any, x: Instance) -> str | None:
    """Return the memo of the prediction that the instance gets now, as text; None if the learner needs none."""
    made = learner.memo_one(x) if hasattr(learner, "memo_one") else b""
    return base64.b64encode(made).decode() if made else None


def fitting_memo(learner: Any, x: Instance, text: str) -> bytes | None:
    """Return the memo in this text; None if another learner, since replaced, made it."""
    made = base64.b64decode(text)
    return made if hasattr(learner, "memo_fits") and learner.memo_fits(x, made) else None


def _score(learner: Any, x: Instance) -> dict[str, Any]:
    score, p = learner.score_and_p_value_one(x)
    result = {"score": score, "p_value": p, "anomaly": p <= learner.rate}
    if result["anomaly"]:
        result["because"] = dict(list(learner.explain_one(x).items())[:_MOST_NAMED])
    return result


def _uncertainty(learner: Any, x: Instance) -> dict[str, Any]:
    coverages = getattr(learner, "coverages", ())
    if not coverages:
        return {}
    if hasattr(learner, "predict_interval_one"):
        pairs = {coverage_key(c): learner.predict_interval_one(x, c) for c in coverages}
        return {"intervals": {c: [v if math.isfinite(v) else None for v in pair] for c, pair in pairs.items()}}
    sets = {coverage_key(c): learner.predict_set_one(x, c) for c in coverages}
    return {"sets": {c: [label for label in learner.classes if label in labels] for c, labels in sets.items()}}


def _label(learner: Any, x: Instance) -> dict[str, Any]:
    """Return the label, and probabilities if there are any."""
    if not hasattr(learner, "predict_proba_one"):
        return {"label": learner.predict_one(x)}
    if isinstance(learner, VaryingClassifier):
        label, probabilities = learner._engine.predict_with_proba_one(x)
    else:
        label, probabilities = learner.predict_one(x), learner.predict_proba_one(x)
    return {"label": label, "probabilities": _for_json(probabilities)}


def _for_json(probabilities: dict[Any, float]) -> dict[Any, float] | list[list[Any]]:
    """Return probabilities by label; pairs [label, probability] if two labels, such as 1 and "1", share a JSON name."""
    if len(set(map(type, probabilities))) < 2:
        return probabilities
    names = {y if isinstance(y, str) else write_json(y).decode() for y in probabilities}
    return probabilities if len(names) == len(probabilities) else [[y, p] for y, p in probabilities.items()]


def loss(prediction: Any, label: Any, *, number: bool) -> float:
    """Return the loss of a prediction: 0 or 1 for labels; for a number the absolute error, bounded to be summed."""
    return min(_LARGEST_LOSS, abs(prediction - label)) if number else float(prediction != label)
