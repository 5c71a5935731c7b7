"""Every harness of the guided fuzzer on its seeds and on mutations of them, without atheris."""

from __future__ import annotations

import random
import warnings

import pytest

from tests.fuzz.guided.harnesses import HARNESSES, LARGEST
from varifold.errors import VarifoldWarning


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double or insert some bytes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) + 1)
        how = rng.randrange(4)
        if how == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del found[at : at + rng.choice((1, 2, 30))]
        elif how == 2:
            found[at:at] = found[at : at + rng.choice((1, 4, 50))]
        else:
            found[at:at] = rng.choice([b"\0", b"\xff\xff", b"9" * 30, b'"', b",", b"e999", b"{", b":", b"=", b"\n"])
    return bytes(found[:LARGEST])


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_harness(name: str, request: pytest.FixtureRequest) -> None:
    harness, seeds = HARNESSES[name]
    rng = random.Random(name)
    count = max(3, request.config.getoption("--instances") // 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VarifoldWarning)  # how the library reports odd input that it accepts
        for seed in seeds():
            harness(seed)
        for k in range(count * 10 if name != "store" else count * 2):
            data = mutated(rng.choice(seeds()), rng)
            try:
                harness(data)
            except Exception as error:
                error.add_note(f"mutation {k} of {name}: {data[:300]!r}")
                raise
