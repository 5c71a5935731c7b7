"""A learner as the server uses it: made by name, asked for an answer, kept as bytes."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping
from typing import Any

from varifold.base.coverages import coverage_key
from varifold.base.learner import is_regressor
from varifold.base.nearest import nearest
from varifold.base.registry import models
from varifold.ensemble import per_key
from varifold.errors import ModelFileError
from varifold.serve.core._rows import may_be_refused
from varifold.serve.core.errors import RefusedError
from varifold.serve.extra import orjson

__all__ = [
    "Instance",
    "answer",
    "as_dict",
    "check",
    "digest",
    "from_bytes",
    "learn",
    "loss",
    "make",
    "predict",
    "reads_json",
    "takes",
    "to_bytes",
]

Instance = Mapping[str, Any] | bytes
"""Features by name, or the JSON text of such an object."""


def make(method: str, params: Mapping[str, Any], key: str | None = None) -> Any:
    """A new learner of a registered method; nothing is imported by a name that a client chose."""
    if method not in models:
        raise RefusedError(f"there is no method {method!r}{nearest(method, models)}")
    accepted = inspect.signature(models[method]).parameters
    for name in params:
        if name not in accepted:
            raise RefusedError(f"{method} has no parameter {name!r}{nearest(name, list(accepted))}")
    learner = models[method](**params)
    return learner if key is None else per_key.by_key(learner, key)


def from_bytes(data: bytes) -> Any:
    """The learner in a model file; a damaged one is refused."""
    try:
        return per_key.from_bytes(data)
    except ModelFileError as error:
        raise RefusedError(str(error)) from error


def to_bytes(learner: Any) -> bytes:
    """The content of the learner's model file."""
    data: bytes = learner.to_bytes()
    return data


def digest(learner: Any) -> str:
    """SHA-256 over the learner's whole state: the content of its model file."""
    return hashlib.sha256(to_bytes(learner)).hexdigest()


def reads_json(learner: Any) -> bool:
    """Whether the learner takes instances as JSON text, equal in everything to the dict that the text spells."""
    return hasattr(learner, "learn_json")


def as_dict(x: Instance) -> Mapping[str, Any]:
    """The features of an instance by name."""
    found: Mapping[str, Any] = orjson.loads(x) if isinstance(x, bytes) else x
    return found


def takes(learner: Any, x: bytes) -> bool:
    """Whether the learner takes these features, with whatever label of JSON, as a look at the text shows."""
    return hasattr(learner, "learn_json") and not is_regressor(learner) and not may_be_refused(x)


def check(learner: Any, x: Instance, y: Any = None) -> None:
    """Raise what learning this instance would raise; changes nothing. None: the label is not known yet.

    A classifier takes any label of JSON, and any numbers: such text is not read here.
    """
    if not isinstance(x, bytes) or is_regressor(learner):
        learner._check_one(as_dict(x), y)
    elif may_be_refused(x):
        learner._engine.check_json(x)


def answer(learner: Any, x: Instance) -> dict[str, Any]:
    """What the learner says of an instance: the label, or a regressor's number, and probabilities where it has them.

    A learner with coverages adds its intervals or sets by coverage; infinite bounds are None.
    """
    return {**_label(learner, x), **_uncertainty(learner, x)}


def _uncertainty(learner: Any, x: Instance) -> dict[str, Any]:
    coverages = getattr(learner, "coverages", ())
    if not coverages:
        return {}
    known = as_dict(x)
    if hasattr(learner, "predict_interval_one"):
        pairs = {coverage_key(c): learner.predict_interval_one(known, c) for c in coverages}
        return {"intervals": {c: [v if math.isfinite(v) else None for v in pair] for c, pair in pairs.items()}}
    held = {coverage_key(c): learner.predict_set_one(known, c) for c in coverages}
    return {"sets": {c: [label for label in learner.classes if label in some] for c, some in held.items()}}


def _label(learner: Any, x: Instance) -> dict[str, Any]:
    """The label, and probabilities where there are any."""
    if isinstance(x, bytes) and is_regressor(learner):
        return {"label": learner.predict_json(x)}
    if isinstance(x, bytes):
        label, probabilities = learner._engine.answer_json(x)
        return {"label": label, "probabilities": _for_json(probabilities)}
    if not hasattr(learner, "predict_proba_one"):
        return {"label": learner.predict_one(x)}
    probabilities = learner.predict_proba_one(x)
    return {"label": learner.predict_one(x), "probabilities": _for_json(probabilities)}


def _for_json(probabilities: dict[Any, float]) -> dict[Any, float] | list[list[Any]]:
    """Probabilities by label; pairs [label, probability] where two labels, such as 1 and "1", have one name in JSON."""
    if len(set(map(type, probabilities))) < 2:
        return probabilities
    names = {y if isinstance(y, str) else orjson.dumps(y, default=str).decode() for y in probabilities}
    return probabilities if len(names) == len(probabilities) else [[y, p] for y, p in probabilities.items()]


def predict(learner: Any, x: Instance) -> Any:
    """The label that the learner says."""
    return learner.predict_json(x) if isinstance(x, bytes) else learner.predict_one(x)


def learn(learner: Any, x: Instance, y: Any, w: float) -> None:
    """Learn an instance."""
    if isinstance(x, bytes):
        learner.learn_json(x, y, w)
    else:
        learner.learn_one(x, y, w)


def loss(given: Any, label: Any) -> float:
    """How wrong an answer was: 0 or 1 for labels, the absolute error where both are floats."""
    if isinstance(given, float) and isinstance(label, float | int):
        return abs(given - label)
    return float(given != label)
