"""Calibration and stacking: multinomial logistic regression on experts' logits, by an extended Kalman filter.

An expert's logits of an instance are its log-probabilities less their mean. A *temperature* scales one expert's; a
*stack* adds all of them up, each with a weight of its own, and a bias a class. Both are Gaussian beliefs that one pass
sharpens: no rate to choose. A little is added to the variances each round, so that they can follow change.
"""

from libc.math cimport exp, sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

cdef struct Temperature:
    double a
    double variance
    double prior        # variance at the start, never exceeded

cdef struct Stack:
    int inputs
    int classes
    double* mean        # [inputs + classes]
    double* cov         # [d][d]
    double* work        # [3 d]
    double* weight      # [inputs]: mean of an input's weight at the start
    double* doubt       # [inputs]: its variance then, never exceeded
    double bias_prior


cdef inline void soften(int k, const double* z, double* out) noexcept nogil:
    """Softmax."""
    cdef int c
    cdef double top = z[0], total = 0.0
    for c in range(1, k):
        if z[c] > top:
            top = z[c]
    for c in range(k):
        out[c] = exp(z[c] - top)
        total += out[c]
    for c in range(k):
        out[c] /= total


cdef inline void heat_learn(Temperature* t, int k, const double* logit, const double* q, int y, double w,
                            double drift) noexcept nogil:
    """Learn label y from the scaled probabilities q of these logits."""
    cdef int c
    cdef double mean = 0.0, square = 0.0, slope = 0.0
    for c in range(k):
        mean += q[c] * logit[c]
        square += q[c] * logit[c] * logit[c]
        slope += (q[c] - (c == y)) * logit[c]
    t.variance = min(t.variance + drift, t.prior)
    t.variance /= 1.0 + t.variance * w * max(square - mean * mean, 0.0)
    t.a -= t.variance * w * slope
    t.a = min(max(t.a, 0.05), 20.0)


cdef inline int stack_make(Stack* s, int inputs, const double* weight, const double* doubt,
                           double bias_prior) noexcept nogil:
    """A belief about the weights of the inputs, no class yet; -1 without memory. Free with stack_free()."""
    s.inputs = inputs
    s.classes = 0
    s.bias_prior = bias_prior
    s.mean = NULL
    s.cov = NULL
    s.work = NULL
    s.weight = <double*> calloc(inputs, sizeof(double))
    s.doubt = <double*> calloc(inputs, sizeof(double))
    if s.weight == NULL or s.doubt == NULL:
        return -1
    memcpy(s.weight, weight, inputs * sizeof(double))
    memcpy(s.doubt, doubt, inputs * sizeof(double))
    return stack_resize(s, 0)


cdef inline void stack_empty(Stack* s) noexcept nogil:
    free(s.mean)
    free(s.cov)
    free(s.work)


cdef inline void stack_free(Stack* s) noexcept nogil:
    stack_empty(s)
    free(s.weight)
    free(s.doubt)


cdef inline int stack_resize(Stack* s, int classes) noexcept nogil:
    """Room for this many classes; new ones start at their prior. -1 without memory."""
    cdef int d = s.inputs + classes, held = s.inputs + s.classes, i
    cdef double* mean = <double*> calloc(d, sizeof(double))
    cdef double* cov = <double*> calloc(d * d, sizeof(double))
    cdef double* work = <double*> calloc(3 * d, sizeof(double))
    if mean == NULL or cov == NULL or work == NULL:
        return -1
    for i in range(d):
        if s.mean != NULL and i < held:
            mean[i] = s.mean[i]
            memcpy(cov + i * d, s.cov + i * held, held * sizeof(double))
        else:
            mean[i] = s.weight[i] if i < s.inputs else 0.0
            cov[i * d + i] = s.doubt[i] if i < s.inputs else s.bias_prior
    stack_empty(s)
    s.mean = mean
    s.cov = cov
    s.work = work
    s.classes = classes
    return 0


cdef inline void stack_answer(Stack* s, const double* logit, double* out) noexcept nogil:
    """Probabilities by class from logits [input][class]."""
    cdef int e, c, k = s.classes
    for c in range(k):
        out[c] = s.mean[s.inputs + c]
    for e in range(s.inputs):
        for c in range(k):
            out[c] += s.mean[e] * logit[e * k + c]
    soften(k, out, out)


cdef inline void stack_learn(Stack* s, const double* logit, const double* q, int y, double w,
                             double drift) noexcept nogil:
    cdef int d = s.inputs + s.classes, k = s.classes, e, c, i, j
    cdef double* slope = s.work
    cdef double* row = s.work + d
    cdef double* u = s.work + 2 * d
    cdef double root, total, mean
    memset(slope, 0, d * sizeof(double))
    for e in range(s.inputs):
        for c in range(k):
            slope[e] += w * (q[c] - (c == y)) * logit[e * k + c]
        s.cov[e * d + e] = min(s.cov[e * d + e] + drift, s.doubt[e])
    for c in range(k):
        slope[s.inputs + c] = w * (q[c] - (c == y))
        i = s.inputs + c
        s.cov[i * d + i] = min(s.cov[i * d + i] + drift, s.bias_prior)
    for c in range(k):
        root = sqrt(w * q[c])
        for e in range(s.inputs):
            mean = 0.0
            for i in range(k):
                mean += q[i] * logit[e * k + i]
            row[e] = root * (logit[e * k + c] - mean)
        for i in range(k):
            row[s.inputs + i] = root * ((i == c) - q[i])
        total = 1.0
        for i in range(d):
            u[i] = 0.0
            for j in range(d):
                u[i] += s.cov[i * d + j] * row[j]
            total += row[i] * u[i]
        for i in range(d):
            for j in range(d):
                s.cov[i * d + j] -= u[i] * u[j] / total
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += s.cov[i * d + j] * slope[j]
        s.mean[i] = min(max(s.mean[i] - total, -20.0), 20.0)
