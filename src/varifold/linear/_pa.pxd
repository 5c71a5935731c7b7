from varifold._engine.models.one_vs_rest cimport BinaryRule

cdef enum Aggression:
    PA0 = 0    # no cap
    PA1 = 1    # capped by C
    PA2 = 2    # 1 / (2 C) added to the norm

cdef inline double step_size(int mode, double C, double loss, double norm, double w) noexcept nogil:
    """Return tau of PA, PA-I or PA-II for a hinge loss > 0 and the squared norm of x; 0 if x is 0."""
    cdef double tau
    if mode == PA2:
        return loss / (norm + 1.0 / (2.0 * C * w))
    if norm <= 0.0:
        return 0.0
    tau = loss / norm
    if mode == PA1 and tau > C * w:
        tau = C * w
    return tau

cdef class PARule(BinaryRule):
    cdef readonly int mode
    cdef readonly double C
