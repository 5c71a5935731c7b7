"""Make lines of JSON from a seed, most of them valid and some of them hostile."""

from __future__ import annotations

import json
import random

NAMES = [
    *(f"f{j}" for j in range(12)), "", " ", "a=b", "a", "b", "=", "colour", "colour=red", "größe", "測\u0301", "\ud800",
    "😀", "x" * 300, "1", "label", 'quote"d', "back\\slash", "tab\t", "\x7f", "/",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "0.0", "-0.0", "1", "-7", "1.5", "-2.25e3", "1E5", "1e+2", "1e-7", "0.1", "123456789012345678",
    "9007199254740993", "9223372036854775807", "18446744073709551615", "18446744073709551616", "1" * 40, "1" * 400,
    "1e999", "-1e999", "1e151", "-1e308", "5e-324", "2.2250738585072011e-308", "1e-400", "0e999", "0.00000000000000001",
    "0." + "0" * 400 + "1", "3.141592653589793238462643383279", "0.1000000000000000055511151231257827", "1e23",
    "8.5e22", "NaN", "Infinity", "-Infinity", "1" * 5000, "12345678.12345678", "1234567890123456789", "true", "false",
    "null",
]  # fmt: skip
BROKEN = [
    "01", "+1", ".5", "1.", "1e", "1e+", "-", "--1", "0x10", "1_000", "nan", "nul", "True", "[1]", "{}", "[]",
    '"open', "'a'", "1 2", "\x00", '"\x01"', '"\\x"', '"\\u12"', "-NaN", "Inf", "-Infinity0", "1e5.5",
]  # fmt: skip
STRINGS = ["red", "b", "b=c", "", "=", "\udfff", "1", "größe", "\ud83d\ude00", "a\nb", 'a"b', "\\", "c" * 200]
SPACES = ["", "", "", " ", "\n", "\t\r\n ", "\x0b", "\xa0"]


def spelled(rng: random.Random, text: str) -> str:
    """A string as JSON, with or without escapes."""
    if rng.random() < 0.2:
        return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 65_536 else c for c in text) + '"'
    return json.dumps(text, ensure_ascii=rng.random() < 0.5)


def value(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.6:
        return repr(rng.gauss(0, 1) * 10 ** rng.randrange(-8, 8))
    if roll < 0.75:
        return repr(round(rng.gauss(0, 5), rng.randrange(4)))
    if roll < 0.9:
        return rng.choice(NUMBERS)
    return spelled(rng, rng.choice(STRINGS)) if roll < 0.995 else rng.choice(BROKEN)


def line(rng: random.Random) -> bytes:
    """A line; one in a few is damaged afterwards."""
    space = " " if rng.random() < 0.9 else rng.choice(SPACES)
    pairs = []
    for name in rng.sample(NAMES, rng.choice((0, 1, 2, 3, 5, 8, 16))):
        pairs.append(f"{spelled(rng, name)}{rng.choice(('', space))}:{space}{value(rng)}")
    if rng.random() < 0.05 and pairs:
        pairs.append(rng.choice(pairs))
    if rng.random() < 0.8:
        pairs.insert(rng.randrange(len(pairs) + 1), f'"label": {rng.choice(("1", "0", "true", "1.0"))}')
    text = "{" + f",{space}".join(pairs) + "}" + (rng.choice(SPACES) if rng.random() < 0.1 else "")
    data = text.encode("utf-8", "surrogatepass")
    return damaged(rng, data) if rng.random() < 0.1 else data


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The line with a byte changed, dropped or put in, cut, or in another encoding."""
    at = rng.randrange(len(data) + 1)
    new = bytes([rng.randrange(256)]) if rng.random() < 0.5 else rng.choice([b'"', b"{", b"}", b",", b":", b"\\", b"0"])
    roll = rng.randrange(6)
    if roll == 0:
        return data[:at]
    if roll == 1:
        return data[:at] + new + data[at:]
    if roll == 2:
        return data[:at] + new + data[at + 1 :]
    if roll == 3:
        return data[:at] + data[at + 1 :]
    if roll == 4:
        return rng.choice([b"\xef\xbb\xbf" + data, data + b" {}", data.decode("utf-8", "replace").encode("utf-16")])
    return rng.choice([b"", b" ", b"[]", b"3", b"null", b'"text"', b"[{}]"])
