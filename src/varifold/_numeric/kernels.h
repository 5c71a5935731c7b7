/* Loops over neighbouring numbers; see kernels.pxd. */

#ifndef VARIFOLD_KERNELS_H
#define VARIFOLD_KERNELS_H

#include <stddef.h>

#include "varifold/_numeric/wide.h"

static VARIFOLD_WIDE void varifold_add(ptrdiff_t n, double* VARIFOLD_ALONE out, double x, const double* a) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] += x * a[j];
}

/* for runs that are often short: not worth a call */
static inline void varifold_add_scaled_sum(ptrdiff_t n, double* VARIFOLD_ALONE out, double x, const double* a,
        const double* b) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] += x * a[j] + b[j];
}

static VARIFOLD_WIDE void varifold_subtract(ptrdiff_t n, double* VARIFOLD_ALONE out, double x, const double* a) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] -= x * a[j];
}

static VARIFOLD_WIDE void varifold_add_four(ptrdiff_t n, double* VARIFOLD_ALONE out, const double* x,
        const double* a, const double* b, const double* c, const double* d) {
    const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    for (ptrdiff_t j = 0; j < n; j++) out[j] = out[j] + x0 * a[j] + x1 * b[j] + x2 * c[j] + x3 * d[j];
}

static VARIFOLD_WIDE void varifold_subtract_columns(ptrdiff_t n, double* VARIFOLD_ALONE out, ptrdiff_t m,
        const double* x, ptrdiff_t every, const double* a, ptrdiff_t stride) {
    ptrdiff_t h = 0;
    for (; h + 8 <= m; h += 8) {
        const double x0 = x[h * every], x1 = x[(h + 1) * every], x2 = x[(h + 2) * every], x3 = x[(h + 3) * every];
        const double x4 = x[(h + 4) * every], x5 = x[(h + 5) * every];
        const double x6 = x[(h + 6) * every], x7 = x[(h + 7) * every];
        const double *a0 = a + h * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
        const double *a4 = a3 + stride, *a5 = a4 + stride, *a6 = a5 + stride, *a7 = a6 + stride;
        for (ptrdiff_t j = 0; j < n; j++) out[j] = out[j] - x0 * a0[j] - x1 * a1[j] - x2 * a2[j] - x3 * a3[j]
            - x4 * a4[j] - x5 * a5[j] - x6 * a6[j] - x7 * a7[j];
    }
    for (; h + 4 <= m; h += 4) {
        const double x0 = x[h * every], x1 = x[(h + 1) * every];
        const double x2 = x[(h + 2) * every], x3 = x[(h + 3) * every];
        const double *a0 = a + h * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
        for (ptrdiff_t j = 0; j < n; j++) out[j] = out[j] - x0 * a0[j] - x1 * a1[j] - x2 * a2[j] - x3 * a3[j];
    }
    for (; h < m; h++) {
        const double x0 = x[h * every], *a0 = a + h * stride;
        for (ptrdiff_t j = 0; j < n; j++) out[j] -= x0 * a0[j];
    }
}

static VARIFOLD_WIDE void varifold_add_squares(ptrdiff_t n, double* VARIFOLD_ALONE total,
        double* VARIFOLD_ALONE shared, double x, const double* a) {
    for (ptrdiff_t j = 0; j < n; j++) {
        const double d = x - a[j];
        total[j] += a[j] == a[j] ? d * d : 0.0;
        shared[j] += a[j] == a[j] ? 1.0 : 0.0;
    }
}

static VARIFOLD_WIDE void varifold_subtract_quotients(ptrdiff_t n, double* VARIFOLD_ALONE out, double x,
        const double* VARIFOLD_ALONE a, double by) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] -= x * a[j] / by;
}

static VARIFOLD_WIDE void varifold_blend(ptrdiff_t n, double* VARIFOLD_ALONE out, double x, const double* a,
        const double* b) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] = x * a[j] + (1.0 - x) * b[j];
}

static VARIFOLD_WIDE void varifold_divide_all(ptrdiff_t n, double* VARIFOLD_ALONE out, double by) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] /= by;
}

static VARIFOLD_WIDE void varifold_divide(ptrdiff_t n, double* VARIFOLD_ALONE out, const double* a) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] /= a[j];
}

static VARIFOLD_WIDE void varifold_count_below(ptrdiff_t n, const double* VARIFOLD_ALONE x, int m,
        const double* VARIFOLD_ALONE cut, int* VARIFOLD_ALONE out) {
    for (ptrdiff_t j = 0; j < n; j++) out[j] = 0;
    for (int b = 0; b < m; b++) {
        const double c = cut[b];
        for (ptrdiff_t j = 0; j < n; j++) out[j] += c < x[j];
    }
}

#endif
