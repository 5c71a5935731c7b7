"""Read and write JSON with orjson if it is installed; use the standard library where orjson is missing or fails.

orjson rejects NaN and infinity, which Python and many devices write. Either way whole numbers beyond 64 bits become
floats, so that everything that was read can be written again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from varifold.errors import DataError

if TYPE_CHECKING:
    import orjson
else:
    try:
        import orjson
    except ImportError:
        orjson = None

__all__ = ["read_json", "write_json"]

_MOST_NESTED = 200
"""Most objects and lists within one another: far more than are in use, and few enough to show and to write."""


def read_json(text: bytes | str) -> Any:
    """Parse JSON; NaN becomes None, "not observed". Raise DataError with the position of a syntax error."""
    if orjson is not None:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = _read_slowly(text)  # or its error names the position
    else:
        value = _read_slowly(text)
    opening = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    if text.count(opening[0]) + text.count(opening[1]) > _MOST_NESTED and _is_deep(value):  # type: ignore[arg-type]
        raise DataError("objects and lists are nested too deep")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether more than _MOST_NESTED objects and lists are within one another."""
    level = [value]
    for _ in range(_MOST_NESTED):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _read_slowly(text: bytes | str) -> Any:
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")  # json.loads would guess UTF-16 and UTF-32 as well
        value = json.loads(text, parse_constant=_constant, parse_int=_integer)
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as error:
        raise DataError("a text holds half of a surrogate pair, which is not valid Unicode") from error
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON at character {error.pos + 1}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"not JSON: byte 0x{error.object[error.start]:02x} is not UTF-8") from error
    except RecursionError as error:
        raise DataError("objects and lists are nested too deep") from error
    except ValueError as error:  # Python reads whole numbers of up to 4,300 digits
        raise DataError("a number has thousands of digits; write it with an exponent") from error


def _integer(digits: str) -> int | float:
    value = int(digits)
    return value if -(1 << 63) <= value < 1 << 64 else float(digits)


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)


def write_json(value: Any) -> bytes:
    """Write a value as compact JSON in UTF-8."""
    if orjson is not None:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode()
