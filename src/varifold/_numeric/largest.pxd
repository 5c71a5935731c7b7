"""Positions of the largest numbers, in order, without memory of their own."""

from libc.math cimport fabs
from libc.stdint cimport int32_t


cdef inline void pick_largest(const double* x, Py_ssize_t first, Py_ssize_t n, Py_ssize_t m, int32_t* picked) noexcept nogil:
    """Write the positions of m numbers of x[first:n] to `picked`: of all if m = n - first, else of the largest in size."""
    cdef Py_ssize_t i, j, best, last = -1
    for j in range(m):
        best = first + j
        if m < n - first:
            best = -1
            for i in range(first, n):
                if last >= 0 and (fabs(x[i]) > fabs(x[last]) or (fabs(x[i]) == fabs(x[last]) and i <= last)):
                    continue
                if best < 0 or fabs(x[i]) > fabs(x[best]):
                    best = i
            last = best
        picked[j] = <int32_t> best
