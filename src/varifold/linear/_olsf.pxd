from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

cdef class OLSFRule(TruncatedRule):
    cdef readonly int mode
    cdef readonly double C, lam, B

    cdef void move(self, View* v, int c, double step) noexcept nogil
    cdef void project(self, int c) noexcept nogil
