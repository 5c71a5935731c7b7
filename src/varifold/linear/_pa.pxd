from varifold._engine.one_vs_rest cimport BinaryRule

cdef enum Aggression:
    PA0 = 0    # as far as the margin asks
    PA1 = 1    # capped by C
    PA2 = 2    # softened by 1 / (2 C)

cdef inline double aggressive(int mode, double C, double loss, double norm, double w) noexcept nogil:
    """The passive-aggressive step for a hinge loss > 0 and a squared norm; 0 where there is nothing to move."""
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
