"""How much a truth that arrives late should count: less, if the errors of successive predictions are alike.

A prediction made `lag` truths before its own arrives cannot profit from them. If errors come in runs (the hours of one
patient share one outcome), each instance of a run moves the weights in the same direction before its effect is seen, and
they swing from run to run. The remedy is to count a run as few instances. With L = 1 + the mean lag, let m be the mean
error over about L instances; independent errors give it the mean square of an error over 2 L - 1. An instance counts
1 / r, where r, from 1 to 1 + its lag, is the observed mean square of m over that. Without a lag r is 1.
"""

cdef enum:
    LATENESS_NUMBERS = 6    # as saved; one more per class

cdef struct Lateness:
    double count            # truths that came late
    double lag              # running mean
    double square           # of the errors, running mean
    double smooth_square    # of the mean error m, running mean
    double variance         # v: of m, if errors are independent and of variance 1
    double independent      # running mean of v


cdef inline void lateness_learn(Lateness* s, double lag, int k, const double* error, double* m) noexcept nogil:
    """Learn the error, k numbers, of a prediction made `lag` truths ago; m is the mean error."""
    cdef int c
    cdef double rate, width, square = 0.0, smooth_square = 0.0
    s.count += 1.0
    rate = 1.0 / min(s.count, 1000.0)
    s.lag += rate * (lag - s.lag)
    width = min(s.count, 1.0 + s.lag)
    s.variance = (1.0 - 1.0 / width) * (1.0 - 1.0 / width) * s.variance + 1.0 / (width * width)
    s.independent += rate * (s.variance - s.independent)
    for c in range(k):
        m[c] += (error[c] - m[c]) / width
        square += error[c] * error[c]
        smooth_square += m[c] * m[c]
    s.square += rate * (square - s.square)
    s.smooth_square += rate * (smooth_square - s.smooth_square)


cdef inline double lateness_ratio(const Lateness* s, double lag) noexcept nogil:
    """Return r, by which the weight of an instance is divided."""
    if not s.square * s.independent > 0.0:
        return 1.0
    return min(max(s.smooth_square / (s.square * s.independent), 1.0), 1.0 + lag)
