"""Sums over rows of a matrix, each over m contiguous numbers; call them with m = 1 or from a `wide` function.

Each number is the sum of the same products in the same order whatever m is.
"""

from libc.stdint cimport int32_t

from varifold._numeric.wide cimport inlined


cdef inline inlined add_rows(double* total, const double* matrix, Py_ssize_t side, Py_ssize_t m, Py_ssize_t n,
                             const int32_t* row, const double* x) noexcept nogil:
    """Add matrix[row[i]][j] x[i] to total[j], j < m, over i in order; rows are `side` apart."""
    cdef const double* a
    cdef const double* b
    cdef const double* c
    cdef const double* d
    cdef double p, q, r, s
    cdef Py_ssize_t i = 0, j
    while i + 4 <= n:  # four rows per load and store of a total
        a, b = matrix + row[i] * side, matrix + row[i + 1] * side
        c, d = matrix + row[i + 2] * side, matrix + row[i + 3] * side
        p, q, r, s = x[i], x[i + 1], x[i + 2], x[i + 3]
        for j in range(m):
            total[j] = (((total[j] + a[j] * p) + b[j] * q) + c[j] * r) + d[j] * s
        i += 4
    while i < n:
        a = matrix + row[i] * side
        p = x[i]
        for j in range(m):
            total[j] += a[j] * p
        i += 1


cdef inline inlined sum_rows(double* total, const double* matrix, Py_ssize_t side, Py_ssize_t m, Py_ssize_t n,
                             const int32_t* row) noexcept nogil:
    """Add matrix[row[i]][j] to total[j], j < m, over i in order; rows are `side` apart."""
    cdef const double* a
    cdef const double* b
    cdef const double* c
    cdef const double* d
    cdef Py_ssize_t i = 0, j
    while i + 4 <= n:
        a, b = matrix + row[i] * side, matrix + row[i + 1] * side
        c, d = matrix + row[i + 2] * side, matrix + row[i + 3] * side
        for j in range(m):
            total[j] = (((total[j] + a[j]) + b[j]) + c[j]) + d[j]
        i += 4
    while i < n:
        a = matrix + row[i] * side
        for j in range(m):
            total[j] += a[j]
        i += 1


cdef inline inlined add_to_rows(double* matrix, Py_ssize_t side, Py_ssize_t m, Py_ssize_t n, const int32_t* row,
                                const double* x, const double* added) noexcept nogil:
    """Add x[i] added[j] to matrix[row[i]][j]."""
    cdef double* a
    cdef double p
    cdef Py_ssize_t i, j
    for i in range(n):
        a = matrix + row[i] * side
        p = x[i]
        for j in range(m):
            a[j] += p * added[j]
