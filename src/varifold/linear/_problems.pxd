"""What an instance adds to all problems of one-versus-rest together, for rules whose weights follow from other numbers.

The numbers of a slot stand side by side for all problems, so that the inner loops run over problems and the compiler
takes several at once; on x86-64 Linux in the widest registers that the machine has. What is added up for a problem is
added in the order of the instance's entries, as if the problems came one after the other.
"""

from libc.stdint cimport int32_t, uint8_t

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #ifndef VARIFOLD_WIDE
    #if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
        && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    #define VARIFOLD_WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define VARIFOLD_WIDE
    #endif
    #endif

    static inline double varifold_shrunk(double w, double by)
    {
        const double left = fabs(w) - by;
        return copysign(left > 0.0 ? left : 0.0, w);
    }

    /* FOBOS: pairs of a weight and the shrinkage that it has had */

    VARIFOLD_WIDE
    static void varifold_add_shrunk(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                    ptrdiff_t n, const int32_t *row, const double *x, const double *restrict total)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            if (row[i] == 0)
                for (ptrdiff_t j = 0; j < length; j++)
                    sum[j] = a[2 * j] * p;
            else
                for (ptrdiff_t j = 0; j < length; j++)
                    sum[j] += varifold_shrunk(a[2 * j], total[j] - a[2 * j + 1]) * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_shrunk(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                     const double *x, const double *restrict step, const double *restrict before,
                                     const double *restrict by, const double *restrict after)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            if (row[i] == 0)
                for (ptrdiff_t j = 0; j < length; j++)
                    a[2 * j] += step[j] * p;
            else
                for (ptrdiff_t j = 0; j < length; j++) {
                    const double w = varifold_shrunk(a[2 * j], before[j] - a[2 * j + 1]) + step[j] * p;
                    a[2 * j] = varifold_shrunk(w, by[j]);
                    a[2 * j + 1] = after[j];
                }
        }
    }

    /* FTRL-ADP in closed form: pairs of v and u, the weight being u - v factor */

    VARIFOLD_WIDE
    static void varifold_add_centred(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                     ptrdiff_t n, const int32_t *row, const double *x, const double *restrict factor)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++)
                sum[j] += (a[2 * j + 1] - a[2 * j] * factor[j]) * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_centred(double *matrix, ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                      const double *x, const double *restrict slope, const double *restrict factor)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double d = slope[j] * p;
                a[2 * j] += d;
                a[2 * j + 1] += d * factor[j];
            }
        }
    }

    /* FTRL-Proximal: z, the root of the summed squared gradients, the weight */

    VARIFOLD_WIDE
    static void varifold_add_thirds(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                    ptrdiff_t n, const int32_t *row, const double *x)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++)
                sum[j] += a[3 * j + 2] * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_proximal(double *restrict a, ptrdiff_t length, double x, const double *restrict slope,
                                       double slowness, double beta, double l1, double l2)
    {
        for (ptrdiff_t j = 0; j < length; j++) {
            const double gradient = slope[j] * x, root = a[3 * j + 1];
            const double grown = sqrt(root * root + gradient * gradient);
            const double z = a[3 * j] + (gradient - (grown - root) * slowness * a[3 * j + 2]);
            const double beyond = fabs(z) - l1;
            const double w = copysign(beyond, -z) / ((beta + grown) * slowness + l2);
            a[3 * j] = z;
            a[3 * j + 1] = grown;
            a[3 * j + 2] = beyond <= 0.0 ? 0.0 : w;
        }
    }

    /* OLIDS: a weight, then count, mean and squared deviations of the values; `width` numbers in all */

    VARIFOLD_WIDE
    static void varifold_add_spreads(double *restrict all, double *restrict old, double *restrict delta,
                                     double *restrict gain, const double *matrix, ptrdiff_t side, ptrdiff_t width,
                                     ptrdiff_t length, ptrdiff_t n, const int32_t *row, const double *x,
                                     const uint8_t *stays, double w)
    {
        for (ptrdiff_t i = 0; i < n; i++, delta += length, gain += length) {
            const double *restrict a = matrix + row[i] * side;
            const double p = x[i];
            const int stayed = stays[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                gain[j] = a[j * width + 1];
                delta[j] = p - a[j * width + 2];
            }
            for (ptrdiff_t j = 0; j < length; j++) {
                const double d = delta[j], count = gain[j], share = 1.0 / (count + w);
                const double spread = (a[j * width + 3] + w * count * share * d * d) * share;
                all[j] += spread;
                old[j] += stayed ? spread : 0.0;
                gain[j] = share;
            }
            if (w != 1.0)
                for (ptrdiff_t j = 0; j < length; j++)
                    gain[j] = w / (a[j * width + 1] + w);
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_parts(double *restrict sum, double *restrict norm, const double *matrix, ptrdiff_t side,
                                   ptrdiff_t width, ptrdiff_t length, ptrdiff_t n, const int32_t *row, const double *x,
                                   const uint8_t *stays, const double *left, const double *stayed)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            const double *restrict part = stays[i] ? stayed : left;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double scaled = part[j] * p;
                sum[j] += part[j] * a[j * width] * p;
                norm[j] += scaled * scaled;
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_parts(double *matrix, ptrdiff_t side, ptrdiff_t width, ptrdiff_t length, ptrdiff_t n,
                                    const int32_t *row, const double *x, const uint8_t *stays, const double *left,
                                    const double *stayed, const double *restrict delta, const double *restrict gain,
                                    double w)
    {
        for (ptrdiff_t i = 0; i < n; i++, delta += length, gain += length) {
            double *restrict a = matrix + row[i] * side;
            const double *restrict part = stays[i] ? stayed : left;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                double *s = a + j * width;
                const double mean = s[2] + delta[j] * gain[j], m2 = s[3] + w * delta[j] * (p - mean);
                s[0] += part[j] * p;
                s[1] += w;
                s[2] = mean;
                s[3] = m2 > 1e300 ? 1e300 : m2;
            }
        }
    }

    /* OLSF: a weight */

    VARIFOLD_WIDE
    static void varifold_add_sizes(double *restrict sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                   ptrdiff_t n, const int32_t *row)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *restrict a = matrix + row[i] * side;
            for (ptrdiff_t j = 0; j < length; j++)
                sum[j] += fabs(a[j]);
        }
    }
    """
    # sum[j] += x[i] times weight j of row[i], shrunk by total[j] less what it has had; row 0 comes first and is not shrunk
    void add_shrunk "varifold_add_shrunk"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                          Py_ssize_t n, const int32_t* row, const double* x,
                                          const double* total) noexcept nogil
    # weight j of row[i], shrunk up to before[j], += step[j] x[i], then shrunk by by[j]; it has had after[j] then
    void step_shrunk "varifold_step_shrunk"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                            const int32_t* row, const double* x, const double* step,
                                            const double* before, const double* by, const double* after) noexcept nogil
    # sum[j] += (u - v factor[j]) x[i] of pair j of row[i]
    void add_centred "varifold_add_centred"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                            Py_ssize_t n, const int32_t* row, const double* x,
                                            const double* factor) noexcept nogil
    # v of pair j of row[i] += slope[j] x[i], u += slope[j] x[i] factor[j]
    void step_centred "varifold_step_centred"(double* matrix, Py_ssize_t side, Py_ssize_t length, Py_ssize_t n,
                                              const int32_t* row, const double* x, const double* slope,
                                              const double* factor) noexcept nogil
    # sum[j] += x[i] times the third number of problem j in row[i]
    void add_thirds "varifold_add_thirds"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                          Py_ssize_t n, const int32_t* row, const double* x) noexcept nogil
    # proximal_step() of the first `length` problems of one row, the gradient being slope[j] x
    void step_proximal "varifold_step_proximal"(double* row, Py_ssize_t length, double x, const double* slope,
                                                double slowness, double beta, double l1, double l2) noexcept nogil
    # the variances of problem j with the values x, all of them into all[j] and those where stays[i] into old[j];
    # delta[i][j] is x[i] less the mean, gain[i][j] the share of the weight w in the count
    void add_spreads "varifold_add_spreads"(double* all, double* old, double* delta, double* gain, const double* matrix,
                                            Py_ssize_t side, Py_ssize_t width, Py_ssize_t length, Py_ssize_t n,
                                            const int32_t* row, const double* x, const uint8_t* stays,
                                            double w) noexcept nogil
    # sum[j] += part x[i] times weight j of row[i], norm[j] += (part x[i])^2; part is stayed[j] where stays[i], or left[j]
    void add_parts "varifold_add_parts"(double* sum, double* norm, const double* matrix, Py_ssize_t side,
                                        Py_ssize_t width, Py_ssize_t length, Py_ssize_t n, const int32_t* row,
                                        const double* x, const uint8_t* stays, const double* left,
                                        const double* stayed) noexcept nogil
    # weight j of row[i] += part x[i]; x[i], of weight w, is counted with what add_spreads() left
    void step_parts "varifold_step_parts"(double* matrix, Py_ssize_t side, Py_ssize_t width, Py_ssize_t length,
                                          Py_ssize_t n, const int32_t* row, const double* x, const uint8_t* stays,
                                          const double* left, const double* stayed, const double* delta,
                                          const double* gain, double w) noexcept nogil
    # sum[j] += |matrix[row[i]][j]|
    void add_sizes "varifold_add_sizes"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                        Py_ssize_t n, const int32_t* row) noexcept nogil
