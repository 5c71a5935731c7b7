"""read_json agrees with the standard library on every line, whether orjson is installed or not."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from tests.base.json_lines import line
from varifold.base import json_text
from varifold.base.json_text import read_json, write_json
from varifold.errors import DataError


def plain(value: Any) -> Any:
    """Return the value with NaN as None and whole numbers beyond 64 bits as floats, as read_json returns it."""
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        return float(str(value))
    return value


def expected(data: bytes) -> Any:
    try:
        value = json.loads(data.decode("utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return plain(value)


def result(data: bytes) -> Any:
    try:
        return plain(read_json(data))
    except DataError:
        return None


@pytest.mark.parametrize("installed", [True, False])
def test_lines_are_read_as_the_standard_library_reads_them(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed:
        monkeypatch.setattr(json_text, "orjson", None)
    rng = random.Random(7)
    valid = 0
    for _ in range(4_000):
        data = line(rng)
        assert repr(result(data)) == repr(expected(data)), data
        valid += expected(data) is not None
    assert valid > 2_500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": 1,}', "not JSON at character [89]"),
        (b'{"a": "\xff"}', "byte 0xff is not UTF-8"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" * 201 + b"]" * 201, "nested too deep"),
        ('{"a": [' * 475 + "]}" * 475, "nested too deep"),
        (b"[NaN, " + b"[" * 900 + b"]" * 901, "nested too deep"),
        ('{"a": 1}'.encode("utf-16"), "byte 0xff is not UTF-8"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "thousands of digits"),
        ("{'a': 1}", "not JSON at character 2"),
    ],
)
def test_errors_say_where_a_text_is_not_json(text: bytes | str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_json(text)


def test_wide_is_not_deep() -> None:
    read_json(b"[" * 200 + b"]" * 200)
    assert read_json("[" + ", ".join(['{"a": []}'] * 500) + "]") == [{"a": []}] * 500
    assert read_json(b'"' + b"[" * 500 + b'"') == "[" * 500


def test_what_orjson_rejects_is_read_by_the_standard_library() -> None:
    assert read_json(b'{"a": NaN, "b": -Infinity, "c": 1e400}') == {"a": None, "b": -math.inf, "c": math.inf}


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**25, 10**400, -(10**400)])
@pytest.mark.parametrize("other", [b"1", b"NaN"])
def test_whole_numbers_beyond_64_bits_are_floats_whoever_reads_them(number: int, other: bytes) -> None:
    """The NaN makes the standard library read the text. What was read can be written."""
    (found, _) = read_json(b"[%d, %b]" % (number, other))
    assert found == (number if -(2**63) <= number < 2**64 else float(str(number)))
    assert type(found) is (int if -(2**63) <= number < 2**64 else float)
    write_json(found)


def test_writing_is_compact_with_or_without_orjson(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"größe": [1, 2.5, None, True], 3: "x"}
    text = write_json(value)
    assert text == '{"größe":[1,2.5,null,true],"3":"x"}'.encode()
    monkeypatch.setattr(json_text, "orjson", None)
    assert write_json(value) == text
