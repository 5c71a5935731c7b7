"""Calibration and stacking: multinomial logistic regression on experts' logits, by an extended Kalman filter.

An expert's logits of an instance are its log-probabilities minus their mean. A *temperature* scales one expert's; a
*stack* adds all of them up, each with a weight of its own, and one bias per class. Both are Gaussian beliefs that one
pass sharpens: there is no rate to choose. A little is added to the variances each round, so that they can follow change.
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

cdef struct Temperature:
    double a            # factor on an expert's logits
    double variance

cdef struct Stack:
    int inputs
    int classes
    int biases          # as many as classes, or 0 when those are more than MOST_BIASES
    Py_ssize_t room     # numbers in `mean` there is memory for
    double* mean        # [d], d = inputs + biases
    double* cov         # [d][d]
    double* work        # [4 d]
    double* weight      # [inputs]: mean of an input's weight at the start
    double* doubt       # [inputs]: its variance then, never exceeded
    double bias_prior


cdef inline void temperature_learn(Temperature* t, double prior, int k, const double* logit, const double* q, int y,
                                   double w, double drift) noexcept nogil:
    """Learn label y from the scaled probabilities q of these logits; the variance never exceeds `prior`."""
    cdef int c
    cdef double mean = 0.0, square = 0.0, slope = 0.0
    for c in range(k):
        mean += q[c] * logit[c]
        square += q[c] * logit[c] * logit[c]
        slope += (q[c] - (c == y)) * logit[c]
    t.variance = min(t.variance + drift, prior)
    t.variance /= 1.0 + t.variance * w * max(square - mean * mean, 0.0)
    t.a -= t.variance * w * slope
    t.a = min(max(t.a, 0.05), 20.0)


cdef inline int stack_make(Stack* s, int inputs, const double* weight, const double* doubt,
                           double bias_prior) noexcept nogil:
    """A belief about the weights of the inputs, no class yet; -1 without memory. Free with stack_free()."""
    cdef int i
    s.inputs = inputs
    s.classes = s.biases = 0
    s.bias_prior = bias_prior
    s.weight = <double*> allocate(inputs * sizeof(double))
    s.doubt = <double*> allocate(inputs * sizeof(double))
    if s.weight == NULL or s.doubt == NULL or stack_reserve(s, 0) < 0:
        return -1
    memcpy(s.weight, weight, inputs * sizeof(double))
    memcpy(s.doubt, doubt, inputs * sizeof(double))
    memset(s.cov, 0, inputs * inputs * sizeof(double))
    for i in range(inputs):
        s.mean[i] = weight[i]
        s.cov[i * inputs + i] = doubt[i]
    return 0


cdef inline void stack_free(Stack* s) noexcept nogil:
    free(s.mean)
    free(s.cov)
    free(s.work)
    free(s.weight)
    free(s.doubt)


cdef inline int stack_biases(int classes) noexcept nogil:
    """Biases that a stack over this many classes has."""
    return classes if classes <= MOST_BIASES else 0


cdef inline int stack_reserve(Stack* s, int classes) noexcept nogil:
    """Room for this many classes; -1 without memory, and all is as before."""
    cdef Py_ssize_t d = s.inputs + stack_biases(classes), room = max(d, s.room + s.room // 2)
    if d <= s.room:
        return 0
    if (resize(<void**> &s.mean, room * sizeof(double)) < 0
            or resize(<void**> &s.cov, room * room * sizeof(double)) < 0
            or resize(<void**> &s.work, 4 * room * sizeof(double)) < 0):
        return -1
    s.room = room
    return 0


cdef inline void stack_lay_out(Stack* s, int classes) noexcept nogil:
    """Give the belief the size for this many classes: new biases start at their prior, dropped ones are integrated out.

    stack_reserve() made room for it.
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
        s.cov[i * d + i] = s.bias_prior
        s.mean[i] = 0.0
    s.classes = classes
    s.biases = stack_biases(classes)


cdef inline void stack_answer(Stack* s, const double* logit, double* out) noexcept nogil:
    """Probabilities by class from logits [input][class]."""
    cdef int e, c, k = s.classes
    for c in range(k):
        out[c] = s.mean[s.inputs + c] if s.biases else 0.0
    for e in range(s.inputs):
        for c in range(k):
            out[c] += s.mean[e] * logit[e * k + c]
    softmax(k, out, out)


cdef inline void stack_learn(Stack* s, const double* logit, const double* q, int y, double w,
                             double drift) noexcept nogil:
    """Learn label y from the stack's probabilities q of these logits: one Kalman step per class, then the means."""
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
        s.cov[e * d + e] = min(s.cov[e * d + e] + drift, s.doubt[e])
    for c in range(s.biases):
        slope[s.inputs + c] = w * (q[c] - (c == y))
        i = s.inputs + c
        s.cov[i * d + i] = min(s.cov[i * d + i] + drift, s.bias_prior)
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


cdef inline void stack_doubt(Stack* s, double part) noexcept nogil:
    """Make every weight less certain by this part of its first variance: the inputs may mean something else now."""
    cdef Py_ssize_t d = s.inputs + s.biases, i
    for i in range(d):
        s.cov[i * d + i] += part * (s.doubt[i] if i < s.inputs else s.bias_prior)
