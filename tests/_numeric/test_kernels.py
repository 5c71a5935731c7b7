"""The loops of kernels.h against NumPy, for lengths around those of the registers; to the bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold

SOURCE = Path(varifold.__file__).parents[1]
COMPILER = shutil.which("cc")
LENGTHS = (0, 1, 3, 4, 7, 8, 17, 100)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="compiles a header: needs a C compiler")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The header as a shared library."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels.c").write_text(
        "#define static\n#define inline\n#include <varifold/_numeric/kernels.h>\n", encoding="utf-8"
    )
    command = [COMPILER, "-O3", "-ffp-contract=off", "-shared", "-fPIC", f"-I{SOURCE}", "kernels.c", "-o", "kernels.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so"))


def pointer(array: Any) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def size(n: int) -> Any:
    return ctypes.c_ssize_t(n)


def vectors(n: int, count: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed + n)
    return [rng.normal(size=n) for _ in range(count)]


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_and_differences(kernels: Any, n: int) -> None:
    out, a, b = vectors(n, 3)
    x = 0.7
    for name, arguments, expected in [
        ("varifold_add", (a,), out + x * a),
        ("varifold_subtract", (a,), out - x * a),
        ("varifold_add_scaled_sum", (a, b), out + (x * a + b)),
        ("varifold_blend", (a, b), x * a + (1.0 - x) * b),
    ]:
        moved = out.copy()
        getattr(kernels, name)(size(n), pointer(moved), ctypes.c_double(x), *map(pointer, arguments))
        np.testing.assert_array_equal(moved, expected, err_msg=name)


@pytest.mark.parametrize("n", LENGTHS)
def test_quotients(kernels: Any, n: int) -> None:
    out, a = vectors(n, 2)
    moved = out.copy()
    kernels.varifold_divide(size(n), pointer(moved), pointer(a))
    np.testing.assert_array_equal(moved, out / a)
    moved = out.copy()
    kernels.varifold_divide_all(size(n), pointer(moved), ctypes.c_double(3.0))
    np.testing.assert_array_equal(moved, out / 3.0)
    moved = out.copy()
    kernels.varifold_subtract_quotients(size(n), pointer(moved), ctypes.c_double(0.7), pointer(a), ctypes.c_double(3.0))
    np.testing.assert_array_equal(moved, out - 0.7 * a / 3.0)


@pytest.mark.parametrize("n", LENGTHS)
def test_several_rows_are_added_in_order(kernels: Any, n: int) -> None:
    out, *rows = vectors(n, 5)
    x = np.array([0.3, -1.7, 2.0, 0.1])
    moved = out.copy()
    kernels.varifold_add_four(size(n), pointer(moved), pointer(x), *map(pointer, rows))
    expected = out
    for factor, row in zip(x, rows, strict=True):
        expected = expected + factor * row
    np.testing.assert_array_equal(moved, expected)


@pytest.mark.parametrize("m", [0, 1, 4, 7, 8, 13])
@pytest.mark.parametrize("n", LENGTHS)
def test_columns_are_subtracted_in_order(kernels: Any, n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    matrix, x, out = rng.normal(size=(m + 1, n + 2)), rng.normal(size=2 * m + 1), rng.normal(size=n)
    moved = out.copy()
    kernels.varifold_subtract_columns(
        size(n), pointer(moved), size(m), pointer(x), size(2), pointer(matrix), size(n + 2)
    )
    expected = out
    for h in range(m):
        expected = expected - x[2 * h] * matrix[h, :n]
    np.testing.assert_array_equal(moved, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_squares_skip_what_is_absent(kernels: Any, n: int) -> None:
    total, shared, a = vectors(n, 3)
    a[::3] = np.nan
    expected = np.where(np.isnan(a), total, total + (0.7 - a) ** 2), shared + ~np.isnan(a)
    kernels.varifold_add_squares(size(n), pointer(total), pointer(shared), ctypes.c_double(0.7), pointer(a))
    np.testing.assert_array_equal(total, expected[0])
    np.testing.assert_array_equal(shared, expected[1])


@pytest.mark.parametrize("n", LENGTHS)
def test_cuts_below(kernels: Any, n: int) -> None:
    (x,), cuts = vectors(n, 1), np.array([-1.0, -0.2, 0.4, 2.0])
    out = np.full(n, 99, dtype=np.intc)
    kernels.varifold_count_below(size(n), pointer(x), ctypes.c_int(len(cuts)), pointer(cuts), pointer(out))
    np.testing.assert_array_equal(out, (cuts[:, None] < x).sum(axis=0))
