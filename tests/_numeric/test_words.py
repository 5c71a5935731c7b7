"""Packed words: the same to the bit, small where there is repetition, and refused when damaged."""

import numpy as np
import pytest

from varifold._numeric.words import pack, unpack


def words(*arrays):
    return np.concatenate([np.ascontiguousarray(a).reshape(-1).view(np.uint64) for a in arrays])


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


SYMMETRIC = numbers(40, 40) + numbers(40, 40).T
TABLE = numbers(100, 30)
NAN = np.array([0x7FF0000000000001, 0xFFF8000000000000, 0x7FFFFFFF00000000, 1 << 63], dtype=np.uint64)
MATERIAL = {
    "nothing": (words(np.zeros(0)), 0),
    "a word": (words([3.3]), 9),
    "zeros": (words(np.zeros(5000)), 4),
    "numbers": (words(numbers(1000)), 8300),
    "numbers of single precision": (words(numbers(1000).astype(np.float32).astype(np.float64)), 4100),
    "whole numbers": (words(np.arange(1000.0)), 4100),
    "rows alike": (words(np.tile(numbers(30), 50)), 260),
    "a symmetric matrix": (words(SYMMETRIC), 820 * 8 + 400),
    "a table by row and by column": (words(TABLE, TABLE.T), 3000 * 8 + 500),
    "a table backwards": (words(numbers(500), numbers(500)[::-1]), 500 * 8 + 60),
    "not a number, infinity and minus zero": (words([np.inf, -np.inf, np.nan, -0.0], NAN, NAN), 80),
    "whole numbers of other kinds": (np.arange(-50, 50, dtype=np.int64).view(np.uint64), 820),
    "few values": (words(np.random.default_rng(1).integers(0, 3, 900) * 0.1), 1900),
}


@pytest.mark.parametrize(("given", "most"), MATERIAL.values(), ids=MATERIAL)
def test_the_same_to_the_bit_in_at_most_so_many_bytes(given, most):
    packed = pack(given)
    assert len(packed) <= most
    assert unpack(packed, len(given)).tobytes() == given.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_random_mixtures_come_back(seed):
    rng = np.random.default_rng(seed)
    parts = [words(numbers(20))]
    for _ in range(int(rng.integers(1, 60))):
        earlier = np.concatenate(parts)
        start, step = int(rng.integers(len(earlier))), int(rng.choice([-7, -1, 1, 1, 2, 30]))
        parts.append(earlier[start::step][: rng.integers(1, 90)])
        parts.append(words(np.zeros(rng.integers(0, 90)), rng.normal(size=rng.integers(0, 40))))
    given = np.concatenate(parts)
    assert unpack(pack(given), len(given)).tobytes() == given.tobytes()


def test_another_number_of_words_is_refused():
    packed = pack(words(TABLE))
    for n in (0, 1, TABLE.size - 1, TABLE.size + 1):
        with pytest.raises(ValueError, match=f"{n} words"):
            unpack(packed, n)


def test_damaged_data_is_refused_or_gives_other_words_of_that_number():
    given = words(SYMMETRIC[:12, :12], np.zeros(40), np.arange(50.0), TABLE[:9], TABLE[:9].T)
    packed = pack(given)
    for length in range(len(packed)):
        with pytest.raises(ValueError, match="words"):
            unpack(packed[:length], len(given))
    rng = np.random.default_rng(0)
    refused = 0
    for place in range(len(packed)):
        damaged = bytearray(packed)
        damaged[place] = int(rng.integers(256))
        try:
            assert len(unpack(bytes(damaged), len(given))) == len(given)
        except ValueError:
            refused += 1
    assert refused
