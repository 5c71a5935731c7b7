"""Learners as text: ``name:key=value,...`` or ``package.module:Class:key=value,...``.

The word ``paper`` before the parameters, ``olvf:paper,C=0.1``, takes the method as its paper has it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from varifold.base import models
from varifold.base.nearest import nearest
from varifold.base.nested import paper_params, without_paper
from varifold.errors import ParameterError, UnknownNameError

_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None}


@dataclass(frozen=True)
class Nested:
    """A learner as the value of another's parameter, written in parentheses; made anew each time."""

    spec: ModelSpec


@dataclass(frozen=True)
class ModelSpec:
    """A learner class with parameters; calling it makes the learner."""

    name: str
    text: str
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def cls(self) -> type[Any]:
        """The class."""
        return models[self.name] if self.name in models else _imported(self.name)

    def __call__(self) -> Any:
        """A new learner."""
        return self.cls(**{k: v.spec() if isinstance(v, Nested) else v for k, v in self.params})

    def takes(self, parameter: str) -> bool:
        """Whether the learner has such a parameter."""
        return parameter in _accepted(self.cls)

    def having(self, **params: Any) -> ModelSpec:
        """The same learner with these parameters."""
        return replace(self, params=tuple({**dict(self.params), **params}.items()))


def parse_model(text: str) -> ModelSpec:
    """Read a specification; names, parameters and values are checked."""
    head, _, rest = text.partition(":")
    name = head
    if head not in models:
        attribute, _, after = rest.partition(":")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", attribute):
            raise UnknownNameError(
                f"there is no model {head!r}{nearest(head, models)} (`varifold models` lists all; a class of your own "
                "is written package.module:Class)"
            )
        name, rest = f"{head}:{attribute}", after
    spec = ModelSpec(name, text)
    params: dict[str, Any] = {}
    is_paper, rest = without_paper(rest)
    for key, value in _pairs(rest, text):
        if key in params:
            raise ParameterError(f"{key!r} is given twice in {text!r}")
        params[key] = _value(value)
    _check(spec.cls, params, text)
    spec = spec.having(**{**(paper_params(spec.cls) if is_paper else {}), **params})
    spec()
    return spec


def _imported(path: str) -> type[Any]:
    module, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise UnknownNameError(
            f"no module named {error.name!r} for the model {path!r}{nearest(module, models)} "
            "(`varifold models` lists the registered ones)"
        ) from error
    except AttributeError as error:
        raise UnknownNameError(f"{module} has no {attribute!r}{nearest(attribute, dir(found))}") from error
    if not (isinstance(found, type) and hasattr(found, "learn_one") and hasattr(found, "predict_one")):
        raise ParameterError(f"{path} is no class with learn_one and predict_one")
    return found


def _accepted(cls: type[Any]) -> dict[str, inspect.Parameter]:
    found = inspect.signature(cls).parameters
    return {k: p for k, p in found.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _check(cls: type[Any], params: dict[str, Any], text: str) -> None:
    kinds = [p.kind for p in inspect.signature(cls).parameters.values()]
    accepted = _accepted(cls)
    for key in params:
        if key not in accepted and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ParameterError(
                f"{cls.__name__} has no parameter {key!r} (in {text!r}){nearest(key, list(accepted))}"
                f"; it has: {', '.join(accepted) or 'none'}"
            )
    missing = [k for k, p in accepted.items() if p.default is p.empty and k not in params]
    if missing:
        raise ParameterError(f"{cls.__name__} needs {', '.join(missing)}: write {text}:{missing[0]}=VALUE")


def _pairs(rest: str, text: str) -> Iterator[tuple[str, str]]:
    for part in _split(rest, text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ParameterError(f"{part!r} in {text!r} is not of the form key=value")
        yield key.strip(), value.strip()


def _split(rest: str, text: str) -> list[str]:
    """Parts between commas that stand outside parentheses and quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for c in rest:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif c == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        current += c
    if depth or quote:
        raise ParameterError(f"a parenthesis or quote is left open in {text!r}")
    return [p for p in [*parts, current] if p.strip()]


def _value(text: str) -> Any:
    """An int, float, bool or None where it reads as one; a learner in parentheses; otherwise, or in quotes, a str."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("(") and text.endswith(")"):
        return Nested(parse_model(text[1:-1]))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
