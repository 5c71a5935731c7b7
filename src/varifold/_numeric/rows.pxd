"""Sums over the rows of a matrix, several rows at a time; on x86-64 Linux in the widest registers that the machine has.

Each number is the sum of the same products in the same order as in a plain loop: results do not depend on the machine.
"""

cimport varifold._numeric.wide
from libc.stdint cimport int32_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>

    VARIFOLD_WIDE
    static void varifold_add_rows(double *VARIFOLD_ALONE sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                  ptrdiff_t n, const int32_t *row, const double *x)
    {
        ptrdiff_t i = 0, j;
        for (; i + 4 <= n; i += 4) {
            const double *a = matrix + row[i] * side, *b = matrix + row[i + 1] * side;
            const double *c = matrix + row[i + 2] * side, *d = matrix + row[i + 3] * side;
            const double p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];
            for (j = 0; j < length; j++)
                sum[j] = (((sum[j] + a[j] * p) + b[j] * q) + c[j] * r) + d[j] * s;
        }
        for (; i < n; i++) {
            const double *a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++)
                sum[j] += a[j] * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_sum_rows(double *VARIFOLD_ALONE sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                  ptrdiff_t n, const int32_t *row)
    {
        ptrdiff_t i = 0, j;
        for (; i + 4 <= n; i += 4) {
            const double *a = matrix + row[i] * side, *b = matrix + row[i + 1] * side;
            const double *c = matrix + row[i + 2] * side, *d = matrix + row[i + 3] * side;
            for (j = 0; j < length; j++)
                sum[j] = (((sum[j] + a[j]) + b[j]) + c[j]) + d[j];
        }
        for (; i < n; i++) {
            const double *a = matrix + row[i] * side;
            for (j = 0; j < length; j++)
                sum[j] += a[j];
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_to_rows(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n,
                                     const int32_t *row, const double *x, const double *VARIFOLD_ALONE added)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *VARIFOLD_ALONE a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++)
                a[j] += p * added[j];
        }
    }

    VARIFOLD_WIDE
    static void varifold_raise_rows(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n,
                                    const int32_t *row, const double *VARIFOLD_ALONE added)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *VARIFOLD_ALONE a = matrix + row[i] * side;
            for (ptrdiff_t j = 0; j < length; j++)
                a[j] += added[j];
        }
    }
    """
    # sum[j] += matrix[row[i]][j] * x[i] for j < length, over i in order; rows are `side` apart
    void add_rows "varifold_add_rows"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                      const int32_t* row, const double* x) noexcept nogil
    # sum[j] += matrix[row[i]][j]
    void sum_rows "varifold_sum_rows"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                      const int32_t* row) noexcept nogil
    # matrix[row[i]][j] += x[i] * added[j]
    void add_to_rows "varifold_add_to_rows"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                            const int32_t* row, const double* x, const double* added) noexcept nogil
    # matrix[row[i]][j] += added[j]
    void raise_rows "varifold_raise_rows"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                          const int32_t* row, const double* added) noexcept nogil
