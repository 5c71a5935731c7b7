/* One pass over a CSR stream, written by hand: what the machine allows for the same arithmetic.
 *
 * limit_pa    plain passive-aggressive, no scaler, no intercept
 * limit_olvf  online standardiser, intercept, dense OLVF (stationarity rule): the work of varifold's OLVF
 *
 * Rows are predicted, then learned; the return value is the number of mistakes.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int64_t limit_pa(int64_t n, const int64_t *ptr, const int32_t *idx, const double *val, const int32_t *y, double *w)
{
    int64_t mistakes = 0;
    for (int64_t r = 0; r < n; r++) {
        double f = 0.0, norm = 0.0, t = y[r] ? 1.0 : -1.0;
        for (int64_t k = ptr[r]; k < ptr[r + 1]; k++) {
            f += w[idx[k]] * val[k];
            norm += val[k] * val[k];
        }
        mistakes += (f > 0.0) != (t > 0.0);
        double loss = 1.0 - t * f;
        if (loss > 0.0 && norm > 0.0) {
            double tau = loss / norm * t;
            for (int64_t k = ptr[r]; k < ptr[r + 1]; k++)
                w[idx[k]] += tau * val[k];
        }
    }
    return mistakes;
}

typedef struct { double weight, mean, m2; } stat;
typedef struct { double w, bar; } cell;

static double sigmoid(double f) { return 1.0 / (1.0 + exp(-f)); }

int64_t limit_olvf(int64_t n, int64_t d, const int64_t *ptr, const int32_t *idx, const double *val, const int32_t *y,
                   double C, double C_bar, double clip)
{
    stat *s = calloc(d + 1, sizeof(stat));
    cell *c = calloc(d + 1, sizeof(cell)); /* cell d is the intercept */
    double *z = malloc((d + 1) * sizeof(double));
    double sum_bar = 0.0;
    int64_t mistakes = 0;
    for (int64_t r = 0; r < n; r++) {
        double f = c[d].w, bar = c[d].bar, t = y[r] ? 1.0 : -1.0, old = 1.0, new = 0.0;
        int64_t m = ptr[r + 1] - ptr[r], n_old = 1;
        const int32_t *id = idx + ptr[r];
        const double *x = val + ptr[r];
        for (int64_t k = 0; k < m; k++) {
            stat *q = &s[id[k]];
            int fresh = q->weight == 0.0;
            q->weight += 1.0;
            double delta = x[k] - q->mean;
            q->mean += delta / q->weight;
            q->m2 += delta * (x[k] - q->mean);
            double v = q->m2 > 0.0 ? (x[k] - q->mean) * sqrt(q->weight / q->m2) : 0.0;
            v = v > clip ? clip : v < -clip ? -clip : v;
            z[k] = v;
            f += c[id[k]].w * v;
            bar += c[id[k]].bar;
            if (fresh) new += v * v; else { old += v * v; n_old++; }
        }
        mistakes += (f > 0.0) != (t > 0.0);
        double sign = (f > 0.0) == (t > 0.0) ? 1.0 : -1.0, margin = sign * bar, slope = sigmoid(-margin);
        double tau_bar = fmin(C_bar, log1p(exp(-margin)) / (slope * slope * (m + 1)));
        double delta = tau_bar * sign * slope;
        double p_x = sigmoid(bar + (m + 1) * delta), p_w = sigmoid(sum_bar + n_old * delta);
        sum_bar += (m + 1) * delta;
        double loss = 1.0 - t * f, step = 0.0;
        if (loss > 0.0)
            step = fmin(C, loss / (old / p_w + new / p_x)) / p_w * t;
        c[d].w += step;
        c[d].bar += delta;
        for (int64_t k = 0; k < m; k++) {
            c[id[k]].w += step * z[k];
            c[id[k]].bar += delta;
        }
    }
    free(s); free(c); free(z);
    return mistakes;
}
