from libc.stdint cimport int32_t

from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

cdef class OLIDSRule(TruncatedRule):
    cdef readonly double C, theta, lam, B

    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil
    cdef double confidence(self, View* v, int c, double w) noexcept nogil
