"""What an instance adds to all problems of one-versus-rest together, for rules with several numbers per weight.

Of a slot the first numbers of all problems stand side by side, the second ones `plane` further on, and so on. The inner
loops run over problems, so that the compiler takes several at once, see `_numeric/wide.pxd`. What is added up for a
problem is added in the order of the instance's entries, as if the problems came one after the other.
"""

cimport varifold._numeric.wide
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from varifold._numeric.activation cimport sigmoid, sigmoids

cdef enum:
    TOGETHER = 256      # problems learned together, at most
    TILE = 16384        # numbers kept for them where a rule keeps one per feature present and problem


cdef inline void set_targets(double* target, Py_ssize_t m, Py_ssize_t own) noexcept nogil:
    """1 for the label's own problem, if it is among these m, and -1 for the others."""
    cdef Py_ssize_t c
    for c in range(m):
        target[c] = -1.0
    if 0 <= own < m:
        target[own] = 1.0


cdef inline void slopes_of(Py_ssize_t m, const double* f, const double* target, Py_ssize_t own, double* slope,
                           double* chances) noexcept nogil:
    """sigmoid(-target f) of m scores, and sigmoid(f) into `chances`, unless NULL: they differ for the own problem alone."""
    cdef double margin[TOGETHER]
    cdef Py_ssize_t c
    for c in range(m):
        margin[c] = -target[c] * f[c]
    sigmoids(m, margin, slope)
    if chances != NULL:
        memcpy(chances, slope, m * sizeof(double))
        if 0 <= own < m:
            chances[own] = sigmoid(f[own])


cdef inline Py_ssize_t tile_width(Py_ssize_t n) noexcept nogil:
    """Problems that TILE numbers suffice for, n features being present; whole vectors of eight where possible."""
    cdef Py_ssize_t m = min(<Py_ssize_t> TOGETHER, TILE // n)
    return m & ~(<Py_ssize_t> 7) if m > 8 else m

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>

    /* AROW: a mean and a precision beyond 1 */

    VARIFOLD_WIDE
    static void varifold_add_variances(double *VARIFOLD_ALONE sum, double *VARIFOLD_ALONE gain, const double *precision,
                                       ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row,
                                       const double *x, ptrdiff_t ahead)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            const double *a = precision + row[i] * side;
            const double p = x[i];
            for (ptrdiff_t j = 0; ahead && j < length; j += 8)
                VARIFOLD_FETCH(a + (ahead + j));
            for (ptrdiff_t j = 0; j < length; j++) {
                const double g = p / (1.0 + a[j]);
                gain[j] = g;
                sum[j] += p * g;
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_gaussians(double *matrix, ptrdiff_t side, ptrdiff_t plane, ptrdiff_t length, ptrdiff_t n,
                                        const int32_t *row, const double *x, const double *VARIFOLD_ALONE gain,
                                        const double *VARIFOLD_ALONE step, const double *VARIFOLD_ALONE active, double r,
                                        double most, ptrdiff_t ahead)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            double *VARIFOLD_ALONE mean = matrix + row[i] * side, *VARIFOLD_ALONE precision = mean + plane;
            const double gained = x[i] * x[i] / r;
            for (ptrdiff_t j = 0; ahead && j < length; j += 8)
                VARIFOLD_FETCH(precision + (ahead + j));
            for (ptrdiff_t j = 0; j < length; j++) {
                const double more = precision[j] + gained * active[j];
                mean[j] += step[j] * gain[j];
                precision[j] = more > most ? most : more;
            }
        }
    }

    /* one row of it, for the learners whose inputs are values and bins */

    VARIFOLD_WIDE
    static void varifold_add_quotients(ptrdiff_t length, double *VARIFOLD_ALONE sum, double square,
                                       const double *precision)
    {
        for (ptrdiff_t j = 0; j < length; j++)
            sum[j] += square / (1.0 + precision[j]);
    }

    VARIFOLD_WIDE
    static void varifold_step_row(ptrdiff_t length, double *VARIFOLD_ALONE mean, double *VARIFOLD_ALONE precision,
                                  const double *VARIFOLD_ALONE step, const double *VARIFOLD_ALONE active, double x,
                                  double more, double most)
    {
        for (ptrdiff_t j = 0; j < length; j++) {
            const double moved = mean[j] + step[j] * x / (1.0 + precision[j]), gained = precision[j] + more;
            const double capped = most < gained ? most : gained;
            mean[j] = active[j] > 0.0 ? moved : mean[j];
            precision[j] = active[j] > 0.0 ? capped : precision[j];
        }
    }

    /* FOBOS: a weight, and the shrinkage that it has had */

    static inline double varifold_shrunk(double w, double by)
    {
        const double left = fabs(w) - by;
        return copysign(left > 0.0 ? left : 0.0, w);
    }

    VARIFOLD_WIDE
    static void varifold_add_shrunk(double *VARIFOLD_ALONE sum, const double *matrix, ptrdiff_t side, ptrdiff_t plane,
                                    ptrdiff_t length, ptrdiff_t n, const int32_t *row, const double *x,
                                    const double *total)
    {
        ptrdiff_t i = 0, j;
        if (n > 0 && row[0] == 0) {
            const double p = x[0];
            for (j = 0; j < length; j++)
                sum[j] = matrix[j] * p;
            i = 1;
        }
        for (; i + 2 <= n; i += 2) {
            const double *a = matrix + row[i] * side, *b = matrix + row[i + 1] * side;
            const double p = x[i], q = x[i + 1];
            for (j = 0; j < length; j++) {
                const double first = varifold_shrunk(a[j], total[j] - a[plane + j]) * p;
                sum[j] = (sum[j] + first) + varifold_shrunk(b[j], total[j] - b[plane + j]) * q;
            }
        }
        for (; i < n; i++) {
            const double *a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++)
                sum[j] += varifold_shrunk(a[j], total[j] - a[plane + j]) * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_shrunk(double *matrix, ptrdiff_t side, ptrdiff_t plane, ptrdiff_t length, ptrdiff_t n,
                                     const int32_t *row, const double *x, const double *VARIFOLD_ALONE step,
                                     const double *VARIFOLD_ALONE before, const double *VARIFOLD_ALONE by,
                                     const double *VARIFOLD_ALONE after)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *VARIFOLD_ALONE weight = matrix + row[i] * side, *VARIFOLD_ALONE had = weight + plane;
            const double p = x[i];
            if (row[i] == 0)
                for (ptrdiff_t j = 0; j < length; j++)
                    weight[j] += step[j] * p;
            else
                for (ptrdiff_t j = 0; j < length; j++) {
                    const double w = varifold_shrunk(weight[j], before[j] - had[j]) + step[j] * p;
                    weight[j] = varifold_shrunk(w, by[j]);
                    had[j] = after[j];
                }
        }
    }

    /* FTRL-ADP in closed form: v and u, the weight being u - v factor */

    VARIFOLD_WIDE
    static void varifold_add_centred(double *VARIFOLD_ALONE sum, const double *matrix, ptrdiff_t side, ptrdiff_t plane,
                                     ptrdiff_t length, ptrdiff_t n, const int32_t *row, const double *x,
                                     const double *factor)
    {
        ptrdiff_t i = 0, j;
        for (; i + 2 <= n; i += 2) {
            const double *a = matrix + row[i] * side, *b = matrix + row[i + 1] * side;
            const double p = x[i], q = x[i + 1];
            for (j = 0; j < length; j++)
                sum[j] = (sum[j] + (a[plane + j] - a[j] * factor[j]) * p) + (b[plane + j] - b[j] * factor[j]) * q;
        }
        for (; i < n; i++) {
            const double *a = matrix + row[i] * side;
            const double p = x[i];
            for (j = 0; j < length; j++)
                sum[j] += (a[plane + j] - a[j] * factor[j]) * p;
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_centred(double *matrix, ptrdiff_t side, ptrdiff_t plane, ptrdiff_t length, ptrdiff_t n,
                                      const int32_t *row, const double *x, const double *VARIFOLD_ALONE slope,
                                      const double *VARIFOLD_ALONE factor)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            double *VARIFOLD_ALONE v = matrix + row[i] * side, *VARIFOLD_ALONE u = v + plane;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double d = slope[j] * p;
                v[j] += d;
                u[j] += d * factor[j];
            }
        }
    }

    /* FTRL-Proximal: z, the root of the summed squared gradients, the weight */

    VARIFOLD_WIDE
    static void varifold_step_proximal(double *first, ptrdiff_t plane, ptrdiff_t length, double x,
                                       const double *VARIFOLD_ALONE slope, double slowness, double beta, double l1,
                                       double l2)
    {
        double *VARIFOLD_ALONE z = first, *VARIFOLD_ALONE root = first + plane, *VARIFOLD_ALONE w = root + plane;
        for (ptrdiff_t j = 0; j < length; j++) {
            const double gradient = slope[j] * x;
            const double grown = sqrt(root[j] * root[j] + gradient * gradient);
            const double moved = z[j] + (gradient - (grown - root[j]) * slowness * w[j]);
            const double beyond = fabs(moved) - l1;
            const double weight = copysign(beyond, -moved) / ((beta + grown) * slowness + l2);
            z[j] = moved;
            root[j] = grown;
            w[j] = beyond <= 0.0 ? 0.0 : weight;
        }
    }

    /* OLIDS: a weight, then count, mean and squared deviations of the values */

    VARIFOLD_WIDE
    static void varifold_add_spreads(double *VARIFOLD_ALONE all, double *VARIFOLD_ALONE old, double *VARIFOLD_ALONE gain,
                                     const double *matrix, ptrdiff_t side, ptrdiff_t plane, ptrdiff_t length,
                                     ptrdiff_t n, const int32_t *row, const double *x, const uint8_t *stays, double w)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            const double *count = matrix + row[i] * side + plane, *mean = count + plane, *m2 = mean + plane;
            const double p = x[i], stayed = stays[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double d = p - mean[j], share = 1.0 / (count[j] + w);
                const double spread = (m2[j] + w * count[j] * share * d * d) * share;
                all[j] += spread;
                old[j] += stayed != 0.0 ? spread : 0.0;
                gain[j] = share;
            }
            if (w != 1.0)
                for (ptrdiff_t j = 0; j < length; j++)
                    gain[j] = w / (count[j] + w);
        }
    }

    VARIFOLD_WIDE
    static void varifold_add_parts(double *VARIFOLD_ALONE sum, double *VARIFOLD_ALONE norm, const double *matrix,
                                   ptrdiff_t side, ptrdiff_t length, ptrdiff_t n, const int32_t *row, const double *x,
                                   const uint8_t *stays, const double *left, const double *stayed)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *weight = matrix + row[i] * side, *part = stays[i] ? stayed : left;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double scaled = part[j] * p;
                sum[j] += part[j] * weight[j] * p;
                norm[j] += scaled * scaled;
            }
        }
    }

    VARIFOLD_WIDE
    static void varifold_step_parts(double *matrix, ptrdiff_t side, ptrdiff_t plane, ptrdiff_t length, ptrdiff_t n,
                                    const int32_t *row, const double *x, const uint8_t *stays, const double *left,
                                    const double *stayed, const double *VARIFOLD_ALONE gain, double w)
    {
        for (ptrdiff_t i = 0; i < n; i++, gain += length) {
            double *VARIFOLD_ALONE weight = matrix + row[i] * side, *VARIFOLD_ALONE count = weight + plane;
            double *VARIFOLD_ALONE mean = count + plane, *VARIFOLD_ALONE m2 = mean + plane;
            const double *VARIFOLD_ALONE part = stays[i] ? stayed : left;
            const double p = x[i];
            for (ptrdiff_t j = 0; j < length; j++) {
                const double d = p - mean[j], moved = mean[j] + d * gain[j], more = m2[j] + w * d * (p - moved);
                weight[j] += part[j] * p;
                count[j] += w;
                mean[j] = moved;
                m2[j] = more > 1e300 ? 1e300 : more;
            }
        }
    }

    /* OLSF: a weight */

    VARIFOLD_WIDE
    static void varifold_add_sizes(double *VARIFOLD_ALONE sum, const double *matrix, ptrdiff_t side, ptrdiff_t length,
                                   ptrdiff_t n, const int32_t *row)
    {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *a = matrix + row[i] * side;
            for (ptrdiff_t j = 0; j < length; j++)
                sum[j] += fabs(a[j]);
        }
    }
    """
    # gain[i][j] = x[i] / (1 + precision j of row[i]), sum[j] += x[i] gain[i][j]; what lies `ahead` is fetched, unless 0
    void add_variances "varifold_add_variances"(double* sum, double* gain, const double* precision, Py_ssize_t side,
                                                Py_ssize_t length, Py_ssize_t n, const int32_t* row, const double* x,
                                                Py_ssize_t ahead) noexcept nogil
    # mean j of row[i] += step[j] gain[i][j]; its precision += x[i]^2 / r where active[j] is 1, not where 0, up to `most`
    void step_gaussians "varifold_step_gaussians"(double* matrix, Py_ssize_t side, Py_ssize_t plane, Py_ssize_t length,
                                                  Py_ssize_t n, const int32_t* row, const double* x, const double* gain,
                                                  const double* step, const double* active, double r, double most,
                                                  Py_ssize_t ahead) noexcept nogil
    # sum[j] += square / (1 + precision[j])
    void add_quotients "varifold_add_quotients"(Py_ssize_t length, double* sum, double square,
                                                const double* precision) noexcept nogil
    # where active[j] is 1: mean[j] += step[j] x / (1 + precision[j]), precision[j] += more, up to `most`
    void step_row "varifold_step_row"(Py_ssize_t length, double* mean, double* precision, const double* step,
                                      const double* active, double x, double more, double most) noexcept nogil
    # sum[j] += x[i] times weight j of row[i], shrunk by total[j] less what it has had; row 0 comes first and is not shrunk
    void add_shrunk "varifold_add_shrunk"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t plane,
                                          Py_ssize_t length, Py_ssize_t n, const int32_t* row, const double* x,
                                          const double* total) noexcept nogil
    # weight j of row[i], shrunk up to before[j], += step[j] x[i], then shrunk by by[j]; it has had after[j] then
    void step_shrunk "varifold_step_shrunk"(double* matrix, Py_ssize_t side, Py_ssize_t plane, Py_ssize_t length,
                                            Py_ssize_t n, const int32_t* row, const double* x, const double* step,
                                            const double* before, const double* by, const double* after) noexcept nogil
    # sum[j] += (u - v factor[j]) x[i] of problem j in row[i]
    void add_centred "varifold_add_centred"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t plane,
                                            Py_ssize_t length, Py_ssize_t n, const int32_t* row, const double* x,
                                            const double* factor) noexcept nogil
    # v of problem j in row[i] += slope[j] x[i], u += slope[j] x[i] factor[j]
    void step_centred "varifold_step_centred"(double* matrix, Py_ssize_t side, Py_ssize_t plane, Py_ssize_t length,
                                              Py_ssize_t n, const int32_t* row, const double* x, const double* slope,
                                              const double* factor) noexcept nogil
    # proximal_step() of the first `length` problems of one row, the gradient being slope[j] x
    void step_proximal "varifold_step_proximal"(double* row, Py_ssize_t plane, Py_ssize_t length, double x,
                                                const double* slope, double slowness, double beta, double l1,
                                                double l2) noexcept nogil
    # the variances of problem j with the values x, all of them into all[j] and those where stays[i] into old[j];
    # gain[i][j] is the share of the weight w in the count
    void add_spreads "varifold_add_spreads"(double* all, double* old, double* gain, const double* matrix, Py_ssize_t side,
                                            Py_ssize_t plane, Py_ssize_t length, Py_ssize_t n, const int32_t* row,
                                            const double* x, const uint8_t* stays, double w) noexcept nogil
    # sum[j] += part x[i] times weight j of row[i], norm[j] += (part x[i])^2; part is stayed[j] where stays[i], or left[j]
    void add_parts "varifold_add_parts"(double* sum, double* norm, const double* matrix, Py_ssize_t side,
                                        Py_ssize_t length, Py_ssize_t n, const int32_t* row, const double* x,
                                        const uint8_t* stays, const double* left, const double* stayed) noexcept nogil
    # weight j of row[i] += part x[i]; x[i], of weight w, is counted with the gain that add_spreads() left
    void step_parts "varifold_step_parts"(double* matrix, Py_ssize_t side, Py_ssize_t plane, Py_ssize_t length,
                                          Py_ssize_t n, const int32_t* row, const double* x, const uint8_t* stays,
                                          const double* left, const double* stayed, const double* gain,
                                          double w) noexcept nogil
    # sum[j] += |matrix[row[i]][j]|
    void add_sizes "varifold_add_sizes"(double* sum, const double* matrix, Py_ssize_t side, Py_ssize_t length,
                                        Py_ssize_t n, const int32_t* row) noexcept nogil
