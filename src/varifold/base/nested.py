"""Learners as parameters of other learners: by name, by specification, or as objects."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from varifold.base.files import pack_label, unpack_label
from varifold.base.params import text_of
from varifold.base.registry import detectors, models
from varifold.base.spec import nesting, read_model
from varifold.errors import ModelFileError, ParameterError

_KEY = "learner"
_PAIRS = "pairs"


class Learner:
    """Constraint: a registered name, a specification ``name:key=value,key=value``, or a classifier."""

    def accepts(self, value: object) -> bool:
        """Return whether make_learner() accepts the value."""
        if isinstance(value, str):
            return self.accepts(make_learner(value))
        if isinstance(value, type):
            return False
        return all(callable(getattr(value, call, None)) for call in ("learn_one", "predict_proba_one", "clone"))

    def describe(self) -> str:
        """Describe the accepted values."""
        return "the name of a model, a text like 'arow:r=1', or a classifier with learn_one and predict_proba_one"


def make_learner(given: Any) -> Any:
    """Make a new learner without state from a name or specification, or clone a learner.

    A specification names registered learners only, because a model file may hold one, and loading a file must import
    nothing else.
    """
    if not isinstance(given, str):
        if isinstance(given, type) or not callable(getattr(given, "clone", None)):
            raise ParameterError(
                f"a learner is the name of a model, a text like 'arow:r=1', or a learner. Got {text_of(given)} instead."
            )
        return given.clone()
    with nesting(given):
        return read_model(given, imports=False, detectors=True)()


def pack_params(learner: Any) -> dict[str, Any]:
    """Encode a learner's parameters as JSON; a nested learner becomes its header."""
    packed = {}
    for name in learner._get_params():
        value = getattr(learner, name)
        if hasattr(value, "_header"):
            packed[name] = {_KEY: value._header()}
        elif hasattr(value, "learn_one"):
            raise ModelFileError(
                f"the {name!r} of this {type(learner).__name__} is a {type(value).__name__}, which a model file cannot "
                "hold; pickle the learner instead"
            )
        else:
            packed[name] = _packed(value)
    return packed


def _packed(value: Any) -> Any:
    """Encode a parameter as JSON; a mapping, whose keys are labels, becomes pairs that keep their types."""
    if isinstance(value, Mapping):
        return {_PAIRS: [[pack_label(label), _packed(part)] for label, part in value.items()]}
    return _plain_number(value)


def _plain_number(value: Any) -> Any:
    """Convert a number of any type (NumPy's, a Fraction) to a bool, int or float; return anything else unchanged."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def unpack_params(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Decode what pack_params() encoded; only registered learners are made."""
    return {name: _unpacked(value) for name, value in packed.items()}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if _PAIRS in value:
        return {unpack_label(label): _unpacked(part) for label, part in value[_PAIRS]}
    return _unpacked_learner(value[_KEY]) if _KEY in value else value


def _unpacked_learner(header: Mapping[str, Any]) -> Any:
    if header["method"] not in models and header["method"] not in detectors:
        raise ModelFileError(f"the file names a {header['method']!r} within, which is not registered here")
    cls: Any = (detectors if header["method"] in detectors else models)[header["method"]]
    with nesting(header["method"]):
        made = cls(**unpack_params(header["params"]))
    made._apply_header(header)
    return made
