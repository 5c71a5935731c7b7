"""Calibrated probabilities: a temperature and one bias per label, learned online by an extended Kalman filter.

With logits l_c = log p_c less their mean, q = softmax(a l + b). Factor a and biases b are Gaussian beliefs with their own
variances v; a label y updates each by one Newton step: v = 1 / (1 / v + w F), then minus v w g, where g = sum_c (q_c -
[c = y]) l_c and F is the variance of l under q for the factor, g = q_c - [c = y] and F = q_c (1 - q_c) for a bias. DRIFT is
added to the variances first, up to their first values. q replaces p while it has had the smaller log loss recently. Where
q makes another label more probable than that of the largest score, the two share their probability.
"""

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

from varifold._numeric.activation cimport sigmoid, softmax
from varifold._numeric.hashing cimport mix

cdef enum:
    FIRST = 2000               # instances learned at the start; of later ones it learns one in EVERY
    EVERY = 8
    FEWEST = 30                # instances learned before it is used
    CALIBRATION_NUMBERS = 4    # of a Calibration, as saved; two more per label

cdef extern from "varifold/_engine/targets/calibration.h":
    const double FACTOR_VARIANCE "VARIFOLD_FACTOR_VARIANCE"        # first variances
    const double BIAS_VARIANCE "VARIFOLD_BIAS_VARIANCE"
    const double DRIFT "VARIFOLD_CALIBRATION_DRIFT"
    const double MEMORY "VARIFOLD_CALIBRATION_MEMORY"              # of the comparison of losses, per instance
    const double LEAST_CHANCE "VARIFOLD_LEAST_CHANCE"              # a probability below it counts as this
    const double TIE "VARIFOLD_TIE"                                # by which the predicted label leads, relative
    const double SURE "VARIFOLD_SURE"                              # the largest difference of two calibrated logits

cdef struct Calibration:
    double factor        # a
    double variance      # of a
    double gain          # recent log loss of p less that of q
    double count         # instances learned, up to FIRST


cdef inline void calibration_start(Calibration* s) noexcept nogil:
    s.factor = 1.0
    s.variance = FACTOR_VARIANCE
    s.gain = s.count = 0.0


cdef inline bint calibration_is_due(Calibration* s, int64_t step) noexcept nogil:
    """Return whether it learns from the instance at hand, which then has to be predicted; later ones are drawn."""
    return s.count < FIRST or mix(<uint64_t> step) % EVERY == 0


cdef inline void calibrate(Calibration* s, int k, const double* p, const double* bias, double* logit,
                           double* q) noexcept nogil:
    """Compute logits and calibrated probabilities, none of them 0 or 1, from those of the model."""
    cdef int c
    cdef double mean = 0.0, most = 0.0
    if k == 2:  # the same with fewer logarithms
        logit[1] = 0.5 * log(max(p[1], LEAST_CHANCE) / max(p[0], LEAST_CHANCE))
        logit[0] = -logit[1]
        mean = min(max(2.0 * s.factor * logit[1] + bias[1] - bias[0], -SURE), SURE)
        q[0], q[1] = sigmoid(-mean), sigmoid(mean)
        return
    for c in range(k):
        logit[c] = log(p[c] if p[c] > LEAST_CHANCE else LEAST_CHANCE)
        mean += logit[c]
    mean /= k
    for c in range(k):
        logit[c] -= mean
        q[c] = s.factor * logit[c] + bias[c]
        most = q[c] if c == 0 else max(most, q[c])
    for c in range(k):
        q[c] = max(q[c], most - SURE)
    softmax(k, q, q)


cdef inline void calibration_agree(int k, int predicted, double* q) noexcept nogil:
    """Leave no label more probable than that of the largest score; those that are share their probability with it."""
    cdef int c, above = 0
    cdef double least = q[predicted], total = q[predicted], share
    for c in range(k):
        if q[c] > least:
            above += 1
            total += q[c]
    if above == 0:
        return
    share = (1.0 - TIE) * total / (above + 1)
    for c in range(k):
        if q[c] > least:
            q[c] = share
    q[predicted] = total - above * share


cdef inline bint is_calibrated(Calibration* s) noexcept nogil:
    """Return whether the calibrated probabilities have been better recently."""
    return s.gain > 0.0 and s.count >= FEWEST


cdef inline void calibration_learn(Calibration* s, int k, const double* p, const double* logit, const double* q,
                                   double* bias, double* variance, int y, double w) noexcept nogil:
    """Learn label y with weight w; p are the model's probabilities, q the calibrated ones."""
    cdef int c
    cdef double mean = 0.0, square = 0.0, slope = 0.0, error
    cdef double least = LEAST_CHANCE
    w = w if w < 10.0 else 10.0
    s.gain = MEMORY * s.gain + w * log(max(q[y], least) / max(p[y], least))
    s.count = min(s.count + 1.0, <double> FIRST)
    for c in range(k):
        error = q[c] - (c == y)
        mean += q[c] * logit[c]
        square += q[c] * logit[c] * logit[c]
        slope += error * logit[c]
        variance[c] = min(variance[c] + DRIFT, BIAS_VARIANCE)
        variance[c] /= 1.0 + variance[c] * w * q[c] * (1.0 - q[c])
        bias[c] = min(max(bias[c] - variance[c] * w * error, -20.0), 20.0)
    s.variance = min(s.variance + DRIFT, FACTOR_VARIANCE)
    s.variance /= 1.0 + s.variance * w * max(square - mean * mean, 0.0)
    s.factor = min(max(s.factor - s.variance * w * slope, 0.05), 20.0)
