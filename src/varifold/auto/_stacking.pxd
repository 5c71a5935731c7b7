"""Calibration and stacking: multinomial logistic regression on the experts' logits, by an extended Kalman filter.

An expert's logits are its log-probabilities less their mean. A *temperature* multiplies the logits of one expert. The
*stack* adds up those of all experts, each with its own weight, and one bias per class:

    p(c) = softmax_c(sum_e weight_e logit_ec + bias_c).

Both are Gaussian beliefs (mean and covariance) over their parameters, and an instance with label y updates them by one
Newton step: with gradient g and Fisher information F of its log loss, C = (C^-1 + F)^-1 and mean -= C g. So there is no
rate to choose. A drift is added to the variances first, up to their value at the start, so that they follow change.
Beyond MOST_BIASES classes the stack has no biases: their covariance would grow with the square of the classes.
"""

from libc.math cimport sqrt
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from varifold._numeric.activation cimport softmax
from varifold._numeric.kernels cimport add_multiple, subtract_quotients
from varifold._numeric.memory cimport allocate, resize

cdef enum:
    MOST_BIASES = 64
    TEMPERATURE_NUMBERS = 2    # as saved

cdef struct Temperature:
    double factor       # on an expert's logits
    double variance

cdef struct Stack:
    int inputs
    int classes
    int biases          # as many as classes, or 0 when those are more than MOST_BIASES
    Py_ssize_t capacity        # of `mean`
    double* mean               # [d], d = inputs + biases
    double* cov                # [d][d]
    double* work               # [4 d]
    double* input_variance     # [inputs]: of an input's weight at the start, never exceeded
    double bias_variance       # of a bias at the start, never exceeded


cdef inline void temperature_learn(Temperature* t, double largest, int k, const double* logit, const double* q, int y,
                                   double w, double drift) noexcept nogil:
    """Learn label y; q are the probabilities of these logits at the temperature, `largest` bounds the variance."""
    cdef int c
    cdef double mean = 0.0, square = 0.0, slope = 0.0    # slope: the gradient; the information is the variance under q
    for c in range(k):
        mean += q[c] * logit[c]
        square += q[c] * logit[c] * logit[c]
        slope += (q[c] - (c == y)) * logit[c]
    t.variance = min(t.variance + drift, largest)
    t.variance /= 1.0 + t.variance * w * max(square - mean * mean, 0.0)
    t.factor -= t.variance * w * slope
    t.factor = min(max(t.factor, 0.05), 20.0)


cdef inline int stack_make(Stack* s, int inputs, const double* weight, const double* variance,
                           double bias_variance) noexcept nogil:
    """Start with these weights of the inputs and no class; -1 without memory. Free with stack_free()."""
    cdef int i
    s.inputs = inputs
    s.classes = s.biases = 0
    s.bias_variance = bias_variance
    s.input_variance = <double*> allocate(inputs * sizeof(double))
    if s.input_variance == NULL or stack_reserve(s, 0) < 0:
        return -1
    memcpy(s.input_variance, variance, inputs * sizeof(double))
    memset(s.cov, 0, inputs * inputs * sizeof(double))
    for i in range(inputs):
        s.mean[i] = weight[i]
        s.cov[i * inputs + i] = variance[i]
    return 0


cdef inline void stack_free(Stack* s) noexcept nogil:
    free(s.mean)
    free(s.cov)
    free(s.work)
    free(s.input_variance)


cdef inline int stack_biases(int classes) noexcept nogil:
    """Return the number of biases of a stack over this many classes."""
    return classes if classes <= MOST_BIASES else 0


cdef inline int stack_reserve(Stack* s, int classes) noexcept nogil:
    """Reserve memory for this many classes; -1 without memory, and nothing has changed."""
    cdef Py_ssize_t d = s.inputs + stack_biases(classes), capacity = max(d, s.capacity + s.capacity // 2)
    if d <= s.capacity:
        return 0
    if (resize(<void**> &s.mean, capacity * sizeof(double)) < 0
            or resize(<void**> &s.cov, capacity * capacity * sizeof(double)) < 0
            or resize(<void**> &s.work, 4 * capacity * sizeof(double)) < 0):
        return -1
    s.capacity = capacity
    return 0


cdef inline void stack_lay_out(Stack* s, int classes) noexcept nogil:
    """Resize for this many classes, for which stack_reserve() has reserved memory.

    New biases start at 0; dropped ones are integrated out, which leaves the other means and covariances as they are.
    """
    cdef Py_ssize_t old = s.inputs + s.biases, d = s.inputs + stack_biases(classes), i
    if d < old:
        for i in range(1, d):
            memmove(s.cov + i * d, s.cov + i * old, d * sizeof(double))
    for i in range(old - 1 if d > old else -1, -1, -1):
        memmove(s.cov + i * d, s.cov + i * old, old * sizeof(double))
        memset(s.cov + i * d + old, 0, (d - old) * sizeof(double))
    for i in range(old, d):
        memset(s.cov + i * d, 0, d * sizeof(double))
        s.cov[i * d + i] = s.bias_variance
        s.mean[i] = 0.0
    s.classes = classes
    s.biases = stack_biases(classes)


cdef inline void stack_predict(Stack* s, const double* logit, double* out) noexcept nogil:
    """Write the probability by class from logits [input][class]."""
    cdef int e, c, k = s.classes
    for c in range(k):
        out[c] = s.mean[s.inputs + c] if s.biases else 0.0
    for e in range(s.inputs):
        for c in range(k):
            out[c] += s.mean[e] * logit[e * k + c]
    softmax(k, out, out)


cdef inline void stack_learn(Stack* s, const double* logit, const double* q, int y, double w,
                             double drift) noexcept nogil:
    """Learn label y; q are the stack's probabilities of these logits.

    F is the sum over classes of r r^T with r = sqrt(w q_c) (x_c - mean under q of x), x_c the inputs of class c, so
    that (C^-1 + F)^-1 takes one rank-one update (Sherman and Morrison) per class.
    """
    cdef Py_ssize_t d = s.inputs + s.biases, i, j
    cdef int k = s.classes, e, c
    cdef double* slope = s.work
    cdef double* row = s.work + d
    cdef double* u = s.work + 2 * d
    cdef double* centre = s.work + 3 * d    # mean of each input's logits under q
    cdef double root, total
    memset(slope, 0, d * sizeof(double))
    for e in range(s.inputs):
        centre[e] = 0.0
        for c in range(k):
            slope[e] += w * (q[c] - (c == y)) * logit[e * k + c]
            centre[e] += q[c] * logit[e * k + c]
        s.cov[e * d + e] = min(s.cov[e * d + e] + drift, s.input_variance[e])
    for c in range(s.biases):
        slope[s.inputs + c] = w * (q[c] - (c == y))
        i = s.inputs + c
        s.cov[i * d + i] = min(s.cov[i * d + i] + drift, s.bias_variance)
    for c in range(k):
        root = sqrt(w * q[c])
        for e in range(s.inputs):
            row[e] = root * (logit[e * k + c] - centre[e])
        for i in range(s.biases):
            row[s.inputs + i] = root * ((i == c) - q[i])
        total = 1.0
        memset(u, 0, d * sizeof(double))
        for j in range(d):
            add_multiple(d, u, row[j], s.cov + j * d)    # the covariance is symmetric to the bit
        for i in range(d):
            total += row[i] * u[i]
        for i in range(d):
            subtract_quotients(d, s.cov + i * d, u[i], u, total)
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += s.cov[i * d + j] * slope[j]
        s.mean[i] = min(max(s.mean[i] - total, -20.0), 20.0)


cdef inline void stack_widen(Stack* s, double part) noexcept nogil:
    """Add this part of the first variances to the variances: the inputs may mean something else now."""
    cdef Py_ssize_t d = s.inputs + s.biases, i
    for i in range(d):
        s.cov[i * d + i] += part * (s.input_variance[i] if i < s.inputs else s.bias_variance)
