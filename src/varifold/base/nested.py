"""Learners as parameters of other learners: named, spelled out, or given."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from varifold.base.nearest import nearest
from varifold.base.registry import models
from varifold.errors import ModelFileError, ParameterError

_KEY = "learner"
_WORDS = {"true": True, "false": False, "none": None}


class Learner:
    """Constraint: a registered name, a spelling ``name:key=value,key=value``, or a classifier."""

    def accepts(self, value: object) -> bool:
        """Whether a learner can be made of the value."""
        if isinstance(value, str):
            make_learner(value)
            return True
        return all(callable(getattr(value, call, None)) for call in ("learn_one", "predict_proba_one", "clone"))

    def describe(self) -> str:
        """The kinds of value."""
        return "the name of a model, a spelling like 'arow:r=1', or a classifier with learn_one and predict_proba_one"


def make_learner(given: Any) -> Any:
    """A new learner that has learned nothing: of the name or spelling, or like the one given.

    Only registered learners can be spelled: a model file may hold the spelling, and loading a file imports nothing.
    """
    if not isinstance(given, str):
        return given.clone()
    name, _, rest = given.partition(":")
    cls = models[name.strip()]
    is_paper, rest = without_paper(rest)
    params = dict(_pair(part, given) for part in rest.replace(";", ",").split(",") if part.strip())
    accepted = inspect.signature(cls).parameters
    for key in params:
        if key not in accepted:
            raise ParameterError(
                f"{cls.__name__} has no parameter {key!r} (in {given!r}){nearest(key, list(accepted))}"
            )
    return cls(**{**(paper_params(cls) if is_paper else {}), **params})


def without_paper(rest: str) -> tuple[bool, str]:
    """Whether the parameters of a specification start with the word ``paper``, and the parameters after it."""
    first, _, others = rest.partition(",")
    return (True, others) if first.strip() == "paper" else (False, rest)


def paper_params(cls: type[Any]) -> dict[str, Any]:
    """The parameters that make a method as its paper has it; refused where there is no paper."""
    if not hasattr(cls, "_paper_params"):
        raise ParameterError(f"{cls.__name__} is of no paper, so that there is no form of it as in a paper")
    found: dict[str, Any] = cls._paper_params()
    return found


def _pair(part: str, text: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    if not equals:
        raise ParameterError(f"{part!r} in {text!r} is not of the form key=value")
    value = value.strip()
    if value.lower() in _WORDS:
        return key.strip(), _WORDS[value.lower()]
    try:
        return key.strip(), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key.strip(), value


def pack_params(learner: Any) -> dict[str, Any]:
    """A learner's parameters as JSON; a learner among them is its header."""
    packed = {}
    for name in learner._get_params():
        value = getattr(learner, name)
        packed[name] = {_KEY: value._header()} if hasattr(value, "_header") else value
        if packed[name] is value and hasattr(value, "learn_one"):
            raise ModelFileError(
                f"the {name!r} of this {type(learner).__name__} is a {type(value).__name__}, which a model file cannot "
                "hold; pickle the learner instead"
            )
    return packed


def unpack_params(packed: Mapping[str, Any]) -> dict[str, Any]:
    """What pack_params() packed; only registered learners are made."""
    return {
        name: _unpacked(value[_KEY]) if isinstance(value, dict) and _KEY in value else value
        for name, value in packed.items()
    }


def _unpacked(header: Mapping[str, Any]) -> Any:
    if header["method"] not in models:
        raise ModelFileError(f"the file names a {header['method']!r} within, which is not registered here")
    return models[header["method"]](**unpack_params(header["params"]))
