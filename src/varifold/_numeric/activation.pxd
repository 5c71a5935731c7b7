from libc.math cimport exp, log1p

cdef inline double sigmoid(double f) noexcept nogil:
    """1 / (1 + e^-f), without overflow."""
    cdef double e
    if f >= 0.0:
        return 1.0 / (1.0 + exp(-f))
    e = exp(f)
    return e / (1.0 + e)

cdef inline double log_loss(double f) noexcept nogil:
    """log(1 + e^-f), without overflow: the logistic loss of a signed margin f."""
    return log1p(exp(-f)) if f > 0.0 else log1p(exp(f)) - f
