"""Products and inverses of small and medium matrices, equal to the bit for any number of BLAS threads.

A BLAS hands even a product of 64 x 64 matrices to its threads, and waiting for them costs more than the product. Here
every call is a tile below that size, so that one instance stays on one core.
"""

import numpy as np

from libc.math cimport isfinite
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dpotrf


cdef void multiply(char left, char right, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                   const double* a, Py_ssize_t lda, const double* b, Py_ssize_t ldb, double beta,
                   double* c, Py_ssize_t ldc) noexcept nogil:
    """Compute c = alpha a b + beta c; c is m x n, `left` and `right` are N or T as in BLAS."""
    cdef Py_ssize_t i, j, l
    cdef int mi, nj, kl, la = <int> lda, lb = <int> ldb, lc = <int> ldc
    cdef double keep, one = 1.0
    cdef const double* from_a
    cdef const double* from_b
    j = 0
    while j < n:
        nj = <int> (n - j if n - j < TILE else TILE)
        i = 0
        while i < m:
            mi = <int> (m - i if m - i < TILE else TILE)
            l = 0
            while l < k:
                kl = <int> (k - l if k - l < TILE else TILE)
                from_a = a + (l * lda + i if left == c'N' else i * lda + l)
                from_b = b + (j * ldb + l if right == c'N' else l * ldb + j)
                keep = beta if l == 0 else one
                dgemm(&left, &right, &mi, &nj, &kl, &alpha, <double*> from_a, &la, <double*> from_b, &lb, &keep,
                      c + j * ldc + i, &lc)
                l += TILE
            i += TILE
        j += TILE


cdef void multiply_upper(char left, char right, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t lda,
                         const double* b, Py_ssize_t ldb, double beta, double* c, Py_ssize_t ldc) noexcept nogil:
    """Compute c = a b + beta c for the tiles on and above the diagonal of c, n x n; leave those below unchanged."""
    cdef Py_ssize_t j = 0
    while j < n:
        multiply(left, right, min(j + TILE, n), min(n - j, TILE), k, 1.0, a, lda,
                 b + (j * ldb if right == c'N' else j), ldb, beta, c + j * ldc, ldc)
        j += TILE


cdef bint invert_tile(Py_ssize_t n, double* a, Py_ssize_t ld, double* root) noexcept nogil:
    """Invert by the Cholesky factor: a = L L', then multiply the inverse of L by itself."""
    cdef int info, size = <int> n, lda = <int> ld
    cdef Py_ssize_t i, j, k
    cdef double x
    cdef double* line
    cdef double* column
    cdef char lower = c'L'
    dpotrf(&lower, &size, a, &lda, &info)
    if info != 0 or not isfinite(a[(n - 1) * ld + n - 1]):
        return False
    memset(root, 0, n * n * sizeof(double))
    for j in range(n):
        line = root + j * n
        line[j] = 1.0
        for k in range(j, n):
            column = a + k * ld
            line[k] /= column[k]
            x = line[k]
            for i in range(k + 1, n):
                line[i] -= x * column[i]
    multiply(c'T', c'N', n, n, n, 1.0, root, n, root, n, 0.0, a, ld)
    return True


cdef bint invert_spd(Py_ssize_t n, double* a, Py_ssize_t ld, double* scratch) noexcept nogil:
    """Invert a symmetric positive definite matrix (both triangles given) in place; return False if it is not one.

    Halves are inverted by the Schur complement, down to a tile. `scratch` holds n x n numbers.
    """
    cdef Py_ssize_t h = n // 2, m = n - h, i, j
    cdef double* b = a + h * ld
    cdef double* d = b + h
    if n <= TILE:
        return n == 0 or invert_tile(n, a, ld, scratch)
    if not invert_spd(h, a, ld, scratch):
        return False
    multiply(c'N', c'N', h, m, h, 1.0, a, ld, b, ld, 0.0, scratch, h)
    multiply(c'T', c'N', m, m, h, -1.0, b, ld, scratch, h, 1.0, d, ld)
    if not invert_spd(m, d, ld, scratch + h * m):
        return False
    multiply(c'N', c'N', h, m, m, -1.0, scratch, h, d, ld, 0.0, b, ld)
    multiply(c'N', c'T', h, h, m, -1.0, b, ld, scratch, h, 1.0, a, ld)
    for j in range(m):
        for i in range(h):
            a[i * ld + h + j] = b[j * ld + i]
    return True


def inverse(matrix):
    """Return the inverse of a symmetric positive definite matrix, or None if it is not one."""
    out = np.array(matrix, dtype=np.float64, order="F")
    cdef double[::1, :] view = out
    cdef Py_ssize_t n = out.shape[0]
    cdef double[::1] scratch = np.empty(max(1, n * n))
    if n == 0:
        return out
    return out if invert_spd(n, &view[0, 0], n, &scratch[0]) else None


def product(a, b):
    """Return a b."""
    left = np.asfortranarray(a, dtype=np.float64)
    right = np.asfortranarray(b, dtype=np.float64)
    out = np.zeros((left.shape[0], right.shape[1]), order="F")
    cdef double[::1, :] x = left
    cdef double[::1, :] y = right
    cdef double[::1, :] z = out
    if out.size and left.shape[1]:
        multiply(c'N', c'N', out.shape[0], out.shape[1], left.shape[1], 1.0, &x[0, 0], left.shape[0], &y[0, 0],
                 right.shape[0], 0.0, &z[0, 0], out.shape[0])
    return out
