"""Parse specifications, ``name:key=value,...``.

`split_name`, `split_pairs`, `parameters` and `parse_value` read the parts of every specification: learners, scenarios,
types of columns, overrides of bench cells. `parse_model` reads a learner. The word ``paper`` before its parameters,
``olvf:paper,C=0.1``, selects the method exactly as in its paper.

Names are looked up in the registry. Only a caller who passes ``imports=True``, because the text comes from the command
line or from code, may also name a class of any module, ``package.module:Class:key=value,...``: text that comes from a
file, a request or a stored state must never import.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from river import base as river_base

from varifold.base.nearest import nearest
from varifold.base.plugins import from_path
from varifold.base.registry import detectors, models
from varifold.errors import ParameterError, UnknownNameError

__all__ = [
    "MOST_NESTED",
    "ModelSpec",
    "Nested",
    "append_parameters",
    "nesting",
    "parameters",
    "parse_model",
    "parse_spec",
    "parse_value",
    "read_model",
    "regressor_for",
    "split_name",
    "split_pairs",
]

_WORDS = {"true": True, "false": False, "none": None}
MOST_NESTED = 8
"""Maximum depth of nested learners in a specification or a model file."""
_depth: ContextVar[int] = ContextVar("depth of nested learners", default=0)


@contextmanager
def nesting(text: str) -> Iterator[None]:
    """Count a level of learners within learners while the body makes one; raise ParameterError above `MOST_NESTED`."""
    if _depth.get() >= MOST_NESTED:
        raise ParameterError(
            f"{shortened(text)} holds more than {MOST_NESTED} learners within one another; nest fewer of them"
        )
    token = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        _depth.reset(token)


def shortened(text: str) -> str:
    """Quote a text for a message, truncated if it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def split_name(text: str) -> tuple[str, str]:
    """Split a specification at the first colon into the name and the rest."""
    name, _, rest = text.partition(":")
    return name, rest


def split_pairs(text: str, *, last: bool = False) -> list[tuple[str, str | None]]:
    """Split text at commas into (key, value) pairs; the value of a part without ``=`` is None.

    The first ``=`` of a part separates key and value, or the last one if `last`: column names may contain ``=``.
    """
    pairs: list[tuple[str, str | None]] = []
    for part in text.split(","):
        key, equals, value = part.rpartition("=") if last else part.partition("=")
        if part.strip():
            pairs.append((key, value) if equals else (part, None))
    return pairs


def parameters(rest: str, text: str) -> dict[str, str]:
    """Parse ``key=value,...`` to a dict, split at commas outside parentheses and quotes; messages quote `text`."""
    by_name: dict[str, str] = {}
    for part in _outer_parts(rest, text):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key:
            raise ParameterError(f"{part!r} in {text!r} is not of the form key=value")
        if key in by_name:
            raise ParameterError(f"{key!r} is given twice in {text!r}")
        by_name[key] = value
    return by_name


def _outer_parts(rest: str, text: str) -> list[str]:
    """Split at commas outside parentheses and quotes."""
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


@dataclass(frozen=True)
class Nested:
    """A learner as the value of another's parameter, written in parentheses; each call makes a new one."""

    spec: ModelSpec


@dataclass(frozen=True)
class ModelSpec:
    """A learner class with parameters; calling it makes the learner.

    `imports` allows a name that is not registered to be imported, `detectors` one of an anomaly detector.
    """

    name: str
    text: str
    params: tuple[tuple[str, Any], ...] = ()
    imports: bool = False
    detectors: bool = False

    @property
    def cls(self) -> type[Any]:
        """Class of the learner."""
        if self.detectors and self.name in detectors:
            return detectors[self.name]
        if self.imports and self.name not in models:
            return _imported(self.name, self.detectors)
        return models[self.name]

    def __call__(self) -> Any:
        """Make a new learner."""
        return self.cls(**{k: v.spec() if isinstance(v, Nested) else v for k, v in self.params})

    def accepts(self, parameter: str) -> bool:
        """Return whether the learner has this parameter."""
        return parameter in _accepted(self.cls)

    def having(self, **params: Any) -> ModelSpec:
        """Return the same specification with these parameters added or replaced."""
        return replace(self, params=tuple({**dict(self.params), **params}.items()))


def _without_paper(rest: str) -> tuple[bool, str]:
    """Return whether the parameters start with the word ``paper``, and the parameters after it."""
    first, _, others = rest.partition(",")
    return (True, others) if first.strip() == "paper" else (False, rest)


def _paper_params(cls: type[Any]) -> dict[str, Any]:
    """Return the parameters that reproduce the method of the paper; raise ParameterError if there is no paper."""
    if not hasattr(cls, "_paper_params"):
        raise ParameterError(f"{cls.__name__} is of no paper, so that there is no form of it as in a paper")
    params: dict[str, Any] = cls._paper_params()
    return params


def parse_model(text: str, *, imports: bool = False, detectors: bool = False) -> ModelSpec:
    """Parse a specification and check its names, parameters and values.

    Parameters
    ----------
    text
        ``name:key=value,...``
    imports
        Whether a name that is not registered may be imported as ``package.module:Class``, here and in the
        specifications within. Pass True only for text from the command line or from code.
    detectors
        Whether it may be an anomaly detector.

    """
    with nesting(text):
        spec = read_model(text, imports=imports, detectors=detectors)
        spec()
    return spec


def read_model(text: str, *, imports: bool, detectors: bool) -> ModelSpec:
    """Parse a specification like `parse_model`, without making a learner to check the values."""
    name, rest = _split_class(text, imports, detectors)
    spec = ModelSpec(name, text, imports=imports, detectors=detectors)
    is_paper, rest = _without_paper(rest)
    texts = parameters(rest, text)
    _check(spec.cls, texts, text)
    accepted = _accepted(spec.cls)
    params = {key: _parameter(value, accepted.get(key), imports) for key, value in texts.items()}
    return spec.having(**{**(_paper_params(spec.cls) if is_paper else {}), **params})


def _parameter(text: str, parameter: inspect.Parameter | None, imports: bool) -> Any:
    """Parse a value; true, false and none in any case are such values, unless the parameter's default is a str."""
    word = text.lower()
    is_word = word in _WORDS and not (parameter is not None and isinstance(parameter.default, str))
    return _WORDS[word] if is_word else parse_value(text, imports=imports)


def _split_class(text: str, imports: bool, may_detect: bool) -> tuple[str, str]:
    """Split a specification into its class (a registered name or an import path) and its parameters."""
    head, rest = split_name(text)
    if head in models or (may_detect and head in detectors):
        return head, rest
    attribute, after = split_name(rest)
    if imports and re.fullmatch(r"[A-Za-z_][\w.]*", attribute):
        return f"{head}:{attribute}", after
    if head in detectors:
        raise ParameterError(
            f"{head} is a detector, which has no target; use `varifold detect`, or VarifoldDetector in scikit-learn"
        )
    own = "; a class of your own is written package.module:Class" if imports else ""
    raise UnknownNameError(
        f"there is no model {shortened(head)}{nearest(head, models)} (`varifold models` lists all{own})"
    )


def append_parameters(text: str, parameters: str) -> str:
    """Append ``key=value,...`` to the specification of a learner, ``module:Class`` included."""
    head, rest = split_name(text)
    _, after = split_name(rest)
    begun = rest if head in models or head in detectors else after
    return f"{text}{',' if begun else ':'}{parameters}"


def parse_spec(
    text: str, target_type: str | None = None, *, imports: bool = False, detectors: bool = False
) -> ModelSpec:
    """Parse a learner; if only the regressor of that name accepts the parameters, return the regressor."""
    try:
        return parse_model(text, imports=imports, detectors=detectors)
    except ParameterError as wrong:
        name, _, rest = text.partition(":")
        if target_type == "class" or f"{name}regressor" not in models:
            raise
        try:
            return parse_model(f"{name}regressor:{rest}", imports=imports)
        except ParameterError:
            raise wrong from None


def regressor_for(spec: ModelSpec) -> ModelSpec:
    """Return the regressor of the same method with the same parameters; `spec` itself if it is a regressor."""
    if issubclass(spec.cls, river_base.Regressor):
        return spec
    name = f"{spec.name}regressor"
    if name not in models:
        known = ", ".join(name for name, cls in models.items() if issubclass(cls, river_base.Regressor))
        raise ParameterError(
            f"the target is a number, and {spec.name} is a classifier; use a regressor ({known}), or --target-type "
            "class if every number is a class"
        )
    return parse_model(name + spec.text.removeprefix(spec.name), imports=spec.imports)


def _imported(path: str, may_detect: bool) -> type[Any]:
    name, _, rest = path.partition(":")
    close = "" if rest[:1].isupper() and "=" not in rest else nearest(name, models)  # Foo is a class
    target = from_path(path, "model", f"{close} (`varifold models` lists the registered ones)")
    calls = ("predict_one", "score_one") if may_detect else ("predict_one",)
    if not (isinstance(target, type) and hasattr(target, "learn_one") and any(hasattr(target, call) for call in calls)):
        raise ParameterError(f"{path} is no class with learn_one and {' or '.join(calls)}")
    return target


def _accepted(cls: type[Any]) -> dict[str, inspect.Parameter]:
    accepted = inspect.signature(cls).parameters
    return {k: p for k, p in accepted.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _check(cls: type[Any], params: Collection[str], text: str) -> None:
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


def parse_value(text: str, *, imports: bool = False) -> Any:
    """Parse an int, float, bool or None; numbers, or a learner, in parentheses; anything else is a str.

    Quoted text is always a str. `imports` is passed to `parse_model` for a learner in parentheses.
    """
    if text in ("True", "true", "False", "false", "None"):
        return _WORDS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("(") and text.endswith(")"):
        return _in_parentheses(text[1:-1], imports)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _in_parentheses(text: str, imports: bool) -> Nested | tuple[float, ...]:
    """Parse a learner, or numbers between commas, as in ``coverages=(0.8,0.95)``."""
    name, colon, _ = text.partition(":")
    if colon or name in models:
        return Nested(parse_model(text, imports=imports))
    return tuple(_number(part, text) for part in text.split(",") if part.strip())


def _number(part: str, text: str) -> float:
    try:
        return float(part)
    except ValueError:
        word = part.strip()
        raise ParameterError(
            f"{word!r} in '({text})' is neither a number nor a model; write numbers as (0.8,0.95), a learner as "
            f"(olvf:C=0.5){nearest(word, models)}"
        ) from None
