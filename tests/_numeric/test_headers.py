"""Small C headers against Python: counting bits, products of 128 bits, aligned memory, powers of ten, constants."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold

SOURCE = Path(varifold.__file__).parents[1]
COMPILER = shutil.which("cc")
WORDS = [0, 1, 2, 3, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, 0x9E3779B97F4A7C15, 0x0F0F0F0F0F0F0F0F]

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="compiles a header: needs a C compiler")


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Any]:
    """Compile a header with these functions added and return the library."""

    def compile_header(header: str, functions: str, *options: str) -> Any:
        (tmp_path / "tried.c").write_text(f"#define _GNU_SOURCE\n#include <varifold/{header}>\n{functions}\n")
        command = [COMPILER, "-O2", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC", f"-I{SOURCE}"]
        subprocess.run([*command, *options, "tried.c", "-o", "tried.so"], cwd=tmp_path, check=True)
        return ctypes.CDLL(str(tmp_path / "tried.so"))

    return compile_header


@needs_compiler
def test_bits_are_counted_with_and_without_the_instruction(compiled: Callable[..., Any]) -> None:
    functions = """
        int plain(uint64_t x) { return varifold_popcount_plain(x); }
        int by(int instruction, uint64_t x) { return varifold_popcount_by(instruction && varifold_counts_bits(), x); }
        int lowest(uint64_t x) { return varifold_lowest_bit(x); }"""
    bits = compiled("_numeric/bits.h", functions)
    for word in WORDS:
        x = ctypes.c_uint64(word)
        assert (bits.plain(x), bits.by(0, x), bits.by(1, x)) == (word.bit_count(),) * 3
        if word:
            assert bits.lowest(x) == (word & -word).bit_length() - 1


@needs_compiler
@pytest.mark.parametrize("options", [(), ("-U__SIZEOF_INT128__",)], ids=["128 bits", "64 bits"])
def test_products_are_the_same_with_and_without_integers_of_128_bits(
    compiled: Callable[..., Any], options: tuple[str, ...]
) -> None:
    functions = """
        uint64_t high(uint64_t a, uint64_t b) { return high_product(a, b); }
        uint64_t folded(uint64_t a, uint64_t b) { return folded_product(a, b); }"""
    products = compiled("streams/scenarios/draws.h", functions, *options)
    products.high.restype = products.folded.restype = ctypes.c_uint64
    for a in WORDS:
        for b in WORDS:
            high, low = divmod(a * b, 1 << 64)
            assert products.high(ctypes.c_uint64(a), ctypes.c_uint64(b)) == high
            assert products.folded(ctypes.c_uint64(a), ctypes.c_uint64(b)) == high ^ low


@needs_compiler
@pytest.mark.parametrize("size", [0, 1, 1000, 5 << 20])
def test_aligned_memory_is_zero_and_starts_at_a_cache_line(compiled: Callable[..., Any], size: int) -> None:
    functions = "void *get(size_t bytes) { return varifold_aligned(bytes); } void release(void *b) { free(b); }"
    memory = compiled("_numeric/aligned.h", functions)
    memory.get.restype = ctypes.c_void_p
    for _ in range(2):  # the second block may be the first one again
        block = memory.get(ctypes.c_size_t(size))
        assert block % 64 == 0
        content = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(block))
        assert not content.any()
        content[:] = 255
        memory.release(ctypes.c_void_p(block))


@needs_compiler
def test_powers_of_ten_are_exact(compiled: Callable[..., Any]) -> None:
    functions = """
        double power(int i) { return VARIFOLD_POWER[i]; }
        double rest(int i) { return (double) (VARIFOLD_LONG_POWER[i] - (long double) VARIFOLD_POWER[i < 23 ? i : 0]); }
        unsigned long long tens(int i) { return VARIFOLD_TENS[i]; }"""
    decimals = compiled("streams/readers/decimals.h", functions)
    decimals.power.restype = decimals.rest.restype = ctypes.c_double
    decimals.tens.restype = ctypes.c_ulonglong
    assert [decimals.power(i) for i in range(23)] == [10**i for i in range(23)]
    assert [decimals.rest(i) for i in range(23)] == [0.0] * 23
    assert [decimals.tens(i) for i in range(9)] == [10**i for i in range(9)]


def test_steps_of_the_robust_quantile_are_those_of_its_rate() -> None:
    """The two factors of the slowest step are exp(step x level) and exp(-step x (1 - level))."""
    text = (SOURCE / "varifold/_engine/constants.h").read_text()
    constants = {name: float(value) for name, value in re.findall(r"#define VARIFOLD_(\w+) (\S+)", text)}
    step, level = constants["SLOWEST_STEP"], constants["LEVEL"]
    assert constants["SLOWEST_RISE"] == pytest.approx(math.exp(step * level), rel=1e-15)
    assert constants["SLOWEST_FALL"] == pytest.approx(math.exp(-step * (1.0 - level)), rel=1e-15)
