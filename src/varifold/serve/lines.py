"""Read lines of JSON for `varifold follow`, one at a time, as `varifold run` reads a file of them."""

from __future__ import annotations

from typing import Any

from varifold._engine.names.vocabulary import is_missing
from varifold.base.json_text import read_json, write_json
from varifold.base.nearest import nearest
from varifold.errors import DataError
from varifold.serve.core.errors import RejectedError
from varifold.serve.core.input import InputRules

_LONGEST_ID = 200


def parse(line: bytes, rules: InputRules) -> dict[str, Any]:
    """Parse the object in a line, without ignored fields and with nested ones as ``outer.inner``."""
    parsed = read_json(line)
    if type(parsed) is not dict:
        raise RejectedError(f"a {type(parsed).__name__} where an object {{...}} was expected")
    return rules.flat(parsed)


def row_of(values: dict[str, Any], rules: InputRules) -> dict[str, Any]:
    """Make a row of a parsed line: label and id are removed from the features, the key remains."""
    x = dict(values)
    y = rules.label(x.pop(rules.target, None)) if rules.target is not None else None
    more = _id(x, rules.id)
    x = rules.features(x)
    if y is not None and more and x.keys() <= {rules.key}:
        key = None if rules.key is None else x.get(rules.key)
        return {"y": y, **more, **({} if key is None else {"key": key})}
    if rules.key is not None and x.get(rules.key) is None:
        raise DataError(f"no key in field {rules.key!r}, and there is one learner per key{nearest(rules.key, x)}")
    if y is None:
        return {"x": x, **more, **({"keep": True} if more else {})}
    return {"x": x, "y": y, "predict": True, **more}


def names_of(values: dict[str, Any], rules: InputRules) -> dict[str, Any]:
    """Return the fields that the output for a line repeats: the id and the key, unchanged."""
    names = {name: values.get(field) for name, field in (("id", rules.id), ("key", rules.key)) if field is not None}
    return {name: value for name, value in names.items() if not is_missing(value)}


def _id(x: dict[str, Any], field: str | None) -> dict[str, Any]:
    """Remove the id from the features; return it as a field of a row, empty without one."""
    given = x.pop(field, None) if field is not None else None
    if is_missing(given):
        return {}
    if type(given) is not int and not (isinstance(given, str) and 0 < len(given) <= _LONGEST_ID):
        raise DataError(
            f"the id in field {field!r} is {str(given)[:60]!r}; give a string of 1 to {_LONGEST_ID} characters "
            "or a whole number"
        )
    return {"id": _id_text(given) if isinstance(given, str) else given}


def _id_text(given: str) -> str:
    """Return a textual id. The server treats 1 and "1" as one id, so text that reads as a number keeps its quotes."""
    mistaken = given.startswith('"') or given.removeprefix("-").isdecimal()
    return write_json(given).decode() if mistaken else given
