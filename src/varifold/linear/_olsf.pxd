from varifold.linear._truncated cimport TruncatedRule

cdef class OLSFRule(TruncatedRule):
    cdef readonly int mode
    cdef readonly double C, lam, B

    cdef void project(self, int c) noexcept nogil
