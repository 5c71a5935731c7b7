"""Tiled algebra against NumPy, across the sizes of a tile."""

import numpy as np
import pytest

from varifold.copula._dense import inverse, product


@pytest.mark.parametrize("n", [1, 2, 13, 59, 60, 61, 121, 200])
def test_inverse(n):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 3))
    matrix = root @ root.T / n + 0.1 * np.eye(n)
    np.testing.assert_allclose(inverse(matrix), np.linalg.inv(matrix), rtol=0, atol=1e-9 * np.linalg.cond(matrix))


@pytest.mark.parametrize("n", [2, 70])
def test_what_is_not_positive_definite_is_rejected(n):
    matrix = np.eye(n)
    matrix[0, n - 1] = matrix[n - 1, 0] = 1.5
    assert inverse(matrix) is None
    assert inverse(np.full((n, n), np.nan)) is None


@pytest.mark.parametrize("shape", [(1, 1, 1), (60, 61, 59), (130, 7, 122), (5, 0, 3)])
def test_product(shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=0, atol=1e-12 * max(k, 1))
