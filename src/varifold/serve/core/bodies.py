"""What a request may say: its fields and their types, checked before anything is journaled."""

from __future__ import annotations

import json
import math
from typing import Any

from varifold.base.nearest import nearest
from varifold.serve.core._rows import split_row
from varifold.serve.core.errors import RefusedError, RequestError
from varifold.serve.extra import orjson

FIELDS = frozenset({"x", "y", "w", "id", "key", "keep", "predict"})
_MEANT = {"weight": "w", "sample_weight": "w", "label": "y", "target": "y", "features": "x"}
"""Fields by the names that other programs give them."""
_VALUES = frozenset({float, int, str, bool, type(None)})
_LABELS = frozenset({float, int, str, bool})
_LONGEST_ID = 200


def parse(text: bytes) -> dict[str, Any]:
    """A JSON object; the error says where the text is none. NaN, which Python writes and JSON lacks, is null."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        found = _with_constants(text)
        if found is None:
            raise RequestError(f"the body is not JSON: {error}") from error
    if type(found) is not dict:
        raise RefusedError(f'the body is a JSON {_kind(found)}, not an object such as {{"x": {{...}}}}')
    return found


def _with_constants(text: bytes) -> Any:
    """A text that is JSON but for NaN and Infinity: NaN is null, Infinity is refused; None for any other text."""
    if b"NaN" not in text and b"Infinity" not in text:
        return None
    try:
        found = json.loads(text, parse_int=orjson.loads)
    except (ValueError, RecursionError):
        return None
    _refuse_infinity(found)
    try:
        return orjson.loads(orjson.dumps(found))
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return None


def _refuse_infinity(found: Any, name: str = "") -> None:
    """Refuse an infinity, wherever it stands; the name is that of the field or feature."""
    if isinstance(found, float) and math.isinf(found):
        raise RequestError(f'feature {name!r} is {found}; leave it out, or send null, for "not observed"')
    if isinstance(found, dict):
        for key, value in found.items():
            _refuse_infinity(value, key)
    elif isinstance(found, list):
        for value in found:
            _refuse_infinity(value, name)


def read(text: bytes) -> dict[str, Any]:
    """A JSON object; where it has an ordinary instance ``x``, that stays text, which the learner reads itself."""
    return split_row(text) or parse(text)


def read_row(text: bytes) -> dict[str, Any]:
    """A row of a batch or a stream, checked."""
    found = split_row(text)
    if found is None:
        found = parse(text)
    elif len(found) == 2 and "x" in found and "y" in found:
        return found
    check_row(found)
    return found


def check_instance(body: dict[str, Any]) -> None:
    """Refuse a body whose `x` is no object of numbers and strings, or with fields of other types."""
    x = body.get("x")
    if type(x) is not dict and type(x) is not bytes:
        raise RefusedError(f'x is {_shown(x)}; give an object of features, such as {{"x": {{"pressure": 1.2}}}}')
    if type(x) is dict and not _VALUES.issuperset(map(type, x.values())):
        name, value = next((k, v) for k, v in x.items() if type(v) not in _VALUES)
        raise RefusedError(
            f"feature {name!r} is {_shown(value)}; a value is a number or a string: flatten it into features of its own"
        )
    if len(body) > 1 and not (len(body) == 2 and "y" in body):
        _check_rest(body)


def check_label(body: dict[str, Any]) -> None:
    """Refuse a body without a usable label; one without an instance may have an id and a weight besides."""
    if "x" not in body:
        _check_rest(body)
    if type(body.get("y")) not in _LABELS:
        raise RefusedError(f"y is {_shown(body.get('y'))}; a label is a string, a number or a boolean")


def _check_rest(body: dict[str, Any]) -> None:
    for name in body:
        if name not in FIELDS:
            meant = f"; did you mean {_MEANT[name]}?" if name in _MEANT else nearest(name, sorted(FIELDS))
            raise RefusedError(f"there is no field {name!r}{meant}")
    w = body.get("w", 1.0)
    if type(w) not in (int, float) or w < 0:
        raise RefusedError(f"w is {_shown(w)}; a weight is a number >= 0")
    for name in ("id", "key"):
        value = body.get(name)
        if value is not None and (type(value) not in (str, int) or len(str(value)) > _LONGEST_ID or value == ""):
            raise RefusedError(f"{name} is {_shown(value)}; give a string of 1 to {_LONGEST_ID} characters, or an int")
    for name in ("keep", "predict"):
        if name in body and type(body[name]) is not bool:
            raise RefusedError(f"{name} is {_shown(body[name])}; give true or false")


def check_row(body: dict[str, Any]) -> None:
    """Refuse a row of a batch or a stream: an instance to predict, one to learn, or a label with its id."""
    if "x" in body:
        check_instance(body)
        if "y" in body:
            check_label(body)
    elif type(body.get("id")) in (str, int) and "y" in body:
        check_label(body)
    else:
        raise RefusedError(
            'a row has "x" (predict), "x" and "y" (learn) or "id" and "y" (the label of a kept instance)'
        )


def changes(body: dict[str, Any]) -> bool:
    """Whether a row changes anything: all do but plain predictions."""
    return "y" in body or body.get("keep") is True


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _shown(value: Any) -> str:
    if value is None:
        return "missing or null"
    text = repr(value)
    return f"{text[:60]}..." if len(text) > 60 else text
