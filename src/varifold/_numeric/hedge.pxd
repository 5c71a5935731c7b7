"""Exponentially weighted experts, in log space, as a plain struct that any model may hold and use without the GIL.

Weights of the next round are proportional to exp(-eta_t L_i), where L_i is the summed loss of expert i and eta_t is

- FIXED     the rate passed in;
- HORIZON   sqrt(8 ln k / T), T the number of rounds, known in advance;
- ANYTIME   sqrt(8 ln k / t), t the next round, counted from 1.

With sharing (fixed share) every round also redistributes the part `share` of all weight evenly, so that the
mixture follows an expert that becomes the best later: v_i = a_i exp(-eta l_i), a_i = share/k sum(v) + (1 - share) v_i.
A share below 0 is tuned for one switch: 1/(T - 1) under HORIZON, 1/(t + 1) under ANYTIME, with
eta = sqrt(8/T (2 ln k + (T - 1) H(share))).

Losses may have any range; the guarantees of the rates hold for losses in [0, 1].
"""

from libc.math cimport exp, log, log1p, sqrt
from libc.stdlib cimport calloc, free

cdef enum Rate:
    FIXED = 0
    HORIZON = 1
    ANYTIME = 2

cdef struct Experts:
    int k
    int rate
    double eta        # the rate itself under FIXED, T under HORIZON
    double share      # 0: none; below 0: tuned
    double rounds     # rounds learned
    double* held      # [k]: losses less the smallest; when sharing, log weights less the largest


cdef inline int experts_make(Experts* e, int k, int rate, double eta, double share) noexcept nogil:
    """Start with equal weights of k experts; return -1 if out of memory. Free with experts_free()."""
    e.k = k
    e.rate = rate
    e.eta = eta
    e.share = share
    e.rounds = 0.0
    e.held = <double*> calloc(k, sizeof(double))
    return 0 if e.held != NULL else -1


cdef inline void experts_free(Experts* e) noexcept nogil:
    free(e.held)
    e.held = NULL
    e.k = 0


cdef inline double experts_span(Experts* e) noexcept nogil:
    """Return T of the tuning: the horizon, or the number of the next round."""
    return e.eta if e.rate == HORIZON else e.rounds + 1.0


cdef inline double experts_share(Experts* e) noexcept nogil:
    """Return the part of the weight that is redistributed after the next round."""
    if e.share >= 0.0:
        return e.share
    if e.rate == HORIZON:
        return 1.0 / (e.eta - 1.0) if e.eta > 2.0 else 0.5
    return 1.0 / (e.rounds + 2.0)


cdef inline double experts_eta(Experts* e) noexcept nogil:
    """Return the rate of the next round."""
    cdef double span, share, switches
    if e.rate == FIXED:
        return e.eta
    span = experts_span(e)
    if e.share == 0.0:
        return sqrt(8.0 * log(<double> e.k) / span)
    share = experts_share(e)
    switches = -share * log(share) - (1.0 - share) * log1p(-share) if 0.0 < share < 1.0 else 0.0
    return sqrt(8.0 / span * (2.0 * log(<double> e.k) + (span - 1.0) * switches))


cdef inline void experts_weights(Experts* e, double* out) noexcept nogil:
    """Compute the weights of the next round; they sum to one."""
    cdef int i
    cdef double eta, total = 0.0
    if e.share == 0.0:
        eta = experts_eta(e)
        for i in range(e.k):
            out[i] = exp(-eta * e.held[i])
            total += out[i]
    else:
        for i in range(e.k):
            out[i] = exp(e.held[i])
            total += out[i]
    for i in range(e.k):
        out[i] /= total


cdef inline double experts_bounded(double loss) noexcept nogil:
    """Clip a loss to +-1e100; NaN becomes 1e100."""
    if loss < 1e100:
        return loss if loss > -1e100 else -1e100
    return 1e100


cdef inline void experts_learn(Experts* e, const double* losses, double w) noexcept nogil:
    """Update the weights with the losses of a round, each multiplied by w."""
    cdef int i
    cdef double eta, share, best, total
    if e.share == 0.0:
        for i in range(e.k):
            e.held[i] += w * experts_bounded(losses[i])
        best = e.held[0]
        for i in range(1, e.k):
            if e.held[i] < best:
                best = e.held[i]
    else:
        eta = experts_eta(e)
        share = experts_share(e)
        for i in range(e.k):
            e.held[i] -= eta * w * experts_bounded(losses[i])
        best = e.held[0]
        for i in range(1, e.k):
            if e.held[i] > best:
                best = e.held[i]
        total = 0.0
        for i in range(e.k):
            e.held[i] = exp(e.held[i] - best)
            total += e.held[i]
        best = 0.0
        for i in range(e.k):
            e.held[i] = log(share / e.k * total + (1.0 - share) * e.held[i])
            if i == 0 or e.held[i] > best:
                best = e.held[i]
    for i in range(e.k):
        e.held[i] -= best
    e.rounds += 1.0


cdef inline Py_ssize_t experts_size(Experts* e) noexcept nogil:
    """Return the number of values that experts_dump() writes."""
    return e.k + 1


cdef inline void experts_dump(Experts* e, double* out) noexcept nogil:
    cdef int i
    out[0] = e.rounds
    for i in range(e.k):
        out[i + 1] = e.held[i]


cdef inline void experts_fill(Experts* e, const double* numbers) noexcept nogil:
    """Restore what experts_dump() wrote; the experts must have the same settings."""
    cdef int i
    e.rounds = numbers[0]
    for i in range(e.k):
        e.held[i] = numbers[i + 1]


cdef class Weights:
    cdef Experts experts
