"""Read and check the bodies of requests: their fields and types, before anything is applied."""

from __future__ import annotations

import math
from typing import Any

from varifold._engine.names.vocabulary import is_missing
from varifold.base.json_text import read_json
from varifold.base.nearest import nearest
from varifold.errors import DataError
from varifold.serve.core.errors import RejectedError, RequestError
from varifold.streams.readers.context import ABSENT

FIELDS = frozenset({"x", "y", "w", "id", "key", "keep", "predict"})
_MEANT = {"weight": "w", "sample_weight": "w", "label": "y", "target": "y", "features": "x"}
"""Names that other programs use for our fields."""
_ABSENT = frozenset(ABSENT)
_NO_LABEL = frozenset(("", "nan", "null"))
_VALUES = frozenset({float, int, str, bool, type(None)})
_LABELS = frozenset({float, int, str, bool})
_LONGEST_ID = 200
_LONGEST_LABEL = 1_000
"""Most characters of a label: every prediction repeats all labels."""


def parse(text: bytes) -> dict[str, Any]:
    """Parse a JSON object; the error locates the problem. NaN, which Python writes and JSON lacks, becomes null."""
    try:
        body = read_json(text)
    except DataError as error:
        raise RequestError(f"the body is no JSON object: {error}") from error
    if type(body) is not dict:
        raise RejectedError(f'the body is a JSON {_kind(body)}, not an object such as {{"x": {{...}}}}')
    return body


def is_absent(value: Any) -> bool:
    """Return whether a value, or a text, means that there is none, as in the files that `varifold run` reads."""
    return is_missing(value) or (isinstance(value, str) and value in _ABSENT)


def is_no_label(y: Any) -> bool:
    """Return whether a text stands for a missing label; "None" and "NA", absent among values, may be labels."""
    return type(y) is str and y.lower() in _NO_LABEL


def clear_absent_label(body: dict[str, Any]) -> bool:
    """Replace a label by null if it is a text that stands for a missing one; return whether it was."""
    if not is_no_label(body.get("y")):
        return False
    body["y"] = None
    return True


def check_instance(body: dict[str, Any]) -> None:
    """Reject a body whose `x` is not an object of numbers and strings, or whose other fields have wrong types."""
    x = body.get("x")
    if type(x) is not dict:
        raise RejectedError(f'x is {_shown(x)}; give an object of features, such as {{"x": {{"pressure": 1.2}}}}')
    if not _VALUES.issuperset(map(type, x.values())):
        name, value = next((k, v) for k, v in x.items() if type(v) not in _VALUES)
        raise RejectedError(
            f"feature {name!r} is {_shown(value)}; a value is a number or a string: flatten it into separate features"
        )
    check_fields(body)


def check_fields(body: dict[str, Any]) -> None:
    """Reject a body with an instance whose fields other than `x` and `y` are unknown or have wrong types."""
    if len(body) > 1 and not (len(body) == 2 and "y" in body):
        _check_rest(body)


def check_label(body: dict[str, Any]) -> None:
    """Reject a body without a usable label; one without an instance may also have an id, a key and a weight.

    The label of an instance may be null: it is not known.
    """
    if "x" not in body:
        _check_rest(body)
    elif "y" in body and body["y"] is None:
        return
    y = body.get("y")
    if type(y) not in _LABELS:
        raise RejectedError(
            f"y is {_shown(y)}; a label is a string, a number or a boolean, and null next to x if it is not known"
        )
    if type(y) is str and len(y) > _LONGEST_LABEL:
        raise RejectedError(f"y is {_shown(y)}; a label has at most {_LONGEST_LABEL:,} characters")
    if type(y) is float and math.isinf(y):
        raise RejectedError(f"y is {y}; a label is finite")


def _check_rest(body: dict[str, Any]) -> None:
    for name in body:
        if name not in FIELDS:
            meant = f"; did you mean {_MEANT[name]}?" if name in _MEANT else nearest(name, sorted(FIELDS))
            raise RejectedError(f"there is no field {name!r}{meant}")
    w = body.get("w", 1.0)
    if type(w) not in (int, float) or not 0 <= w < math.inf:
        raise RejectedError(f"w is {_shown(w)}; a weight is a number >= 0")
    for name in ("id", "key"):
        if body.get(name) is not None:
            check_identifier(name, body[name])
    for name in ("keep", "predict"):
        if name in body and type(body[name]) is not bool:
            raise RejectedError(f"{name} is {_shown(body[name])}; give true or false")


def check_identifier(name: str, value: Any) -> None:
    """Reject an id or a key that is neither a short string nor an integer of 64 bits."""
    if type(value) is str and 0 < len(value) <= _LONGEST_ID:
        return
    if type(value) is int and -(1 << 63) <= value < 1 << 64:
        return
    raise RejectedError(
        f"{name} is {_shown(value)}; give a string of 1 to {_LONGEST_ID} characters, or an int of 64 bits"
    )


def check_row(body: dict[str, Any]) -> None:
    """Reject a row that is neither an instance to predict or learn nor a label with its id."""
    if "x" in body:
        check_instance(body)
        if "y" in body:
            check_label(body)
    elif type(body.get("id")) in (str, int) and "y" in body:
        check_label(body)
    else:
        raise RejectedError(
            'a row has "x" (predict), "x" and "y" (learn) or "id" and "y" (the label of a kept instance)'
        )


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _shown(value: Any) -> str:
    if value is None:
        return "missing or null"
    text = repr(value)
    return f"{text[:60]}..." if len(text) > 60 else text
