"""Sums over the rows of a matrix, several rows at a time; on x86-64 Linux in the widest registers that the machine has.

Each number is the sum of the same products in the same order as in a plain loop: results do not depend on the machine.
"""

from libc.stdint cimport int32_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
        && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    #define VARIFOLD_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define VARIFOLD_WIDE
    #endif

    VARIFOLD_WIDE
    static void varifold_add_rows(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                  ptrdiff_t n, const int32_t *row, const double *x)
    {
        ptrdiff_t i = 0, j;
        for (; i + 4 <= n; i += 4) {
            const double *restrict a = matrix + row[i] * side, *restrict b = matrix + row[i + 1] * side;
            const double *restrict c = matrix + row[i + 2] * side, *restrict d = matrix + row[i + 3] * side;
            const double p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];
            for (j = 0; j < length; j++)
                sum[j] = (((sum[j] + a[j] * p) + b[j] * q) + c[j] * r) + d[j] * s;
        }
        for (; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++)
                sum[j] += a[j] * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_to_rows(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n,
                                     const int32_t *row, const double *x, const double *restrict added)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++)
                a[j] += p * added[j];
        }
    }
    /* below, a row holds pairs: a weight and another number; `one` is 1: both numbers of a pair
     * have a factor then, and the compiler takes pairs as they stand */

    VARIFOLD_WIDE
    static void varifold_add_weights(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                     ptrdiff_t n, const int32_t *row, const double *x)
    {
        ptrdiff_t i = 0, j;
        for (; i + 4 <= n; i += 4) {
            const double *restrict a = matrix + row[i] * side, *restrict b = matrix + row[i + 1] * side;
            const double *restrict c = matrix + row[i + 2] * side, *restrict d = matrix + row[i + 3] * side;
            const double p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];
            for (j = 0; j < length; j++)
                sum[j] = (((sum[j] + a[2 * j] * p) + b[2 * j] * q) + c[2 * j] * r) + d[2 * j] * s;
        }
        for (; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++)
                sum[j] += a[2 * j] * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_pairs(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                   ptrdiff_t n, const int32_t *row, const double *x, double one)
    {
        ptrdiff_t i = 0, j;
        for (; i + 2 <= n; i += 2) {
            const double *restrict a = matrix + row[i] * side, *restrict b = matrix + row[i + 1] * side;
            const double p = x[i], q = x[i + 1];
            for (j = 0; j < length; j++) {
                sum[2 * j] = (sum[2 * j] + a[2 * j] * p) + b[2 * j] * q;
                sum[2 * j + 1] = (sum[2 * j + 1] + a[2 * j + 1] * one) + b[2 * j + 1] * one;
            }
        }
        for (; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++) {
                sum[2 * j] += a[2 * j] * p;
                sum[2 * j + 1] += a[2 * j + 1] * one;
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_move_pairs(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                    const double *x, const double *restrict step, double one)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                a[2 * j] += step[2 * j] * p;
                a[2 * j + 1] += step[2 * j + 1] * one;
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_variances(double *restrict sum, double *restrict gain, const double *matrix,
                                       ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                       const double *x)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                gain[j] = p / (1.0 + a[2 * j + 1]);
                sum[j] += p * gain[j];
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_pairs(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                    const double *x, const double *restrict gain, const double *restrict step,
                                    const double *restrict active, double r, double most)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            double *restrict a = matrix + row[i] * side;
            const double gained = x[i] * x[i] / r;
            for (ptrdiff_t j = 0; j < length; j++) {
                const double precision = a[2 * j + 1] + gained * active[j];
                a[2 * j] += step[j] * gain[j];
                a[2 * j + 1] = precision > most ? most : precision;
            }
        }
    }
    """
    # sum[j] += matrix[row[i]][j] * x[i] for j < length, over i in order; rows are `side` apart
    void add_rows "varifold_add_rows"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                      const int32_t* row, const double* x) noexcept nogil
    # matrix[row[i]][j] += x[i] * added[j] for j < length
    void add_to_rows "varifold_add_to_rows"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                            const int32_t* row, const double* x, const double* added) noexcept nogil
    # as add_rows(), of the weights of rows of pairs
    void add_weights "varifold_add_weights"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                            Py_ssize_t n, const int32_t* row, const double* x) noexcept nogil
    # pair j of sum += pair j of row[i], its weight times x[i]
    void add_pairs "varifold_add_pairs"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                        Py_ssize_t n, const int32_t* row, const double* x, double one) noexcept nogil
    # pair j of row[i] += pair j of step, its first number times x[i]
    void move_pairs "varifold_move_pairs"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                          const int32_t* row, const double* x, const double* step, double one) noexcept nogil
    # the second number a precision beyond 1: gain[i][j] = x[i] / (1 + precision j of row[i]), sum[j] += x[i] gain[i][j]
    void add_variances "varifold_add_variances"(double* sum, double* gain, const double* matrix, Py_ssize_t side,
                                                Py_ssize_t length, Py_ssize_t n, const int32_t* row,
                                                const double* x) noexcept nogil
    # weight j of row[i] += step[j] gain[i][j]; its precision += x[i]^2 / r where active[j] is 1, not where 0, up to `most`
    void step_pairs "varifold_step_pairs"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                          const int32_t* row, const double* x, const double* gain, const double* step,
                                          const double* active, double r, double most) noexcept nogil
