from libc.stdint cimport int32_t

from varifold.linear._truncated cimport SparseRule
from varifold._engine.view cimport View

cdef class OLIDSRule(SparseRule):
    cdef readonly double C, theta, lam, B

    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil
    cdef double confidence(self, View* v, int c, double w) noexcept nogil
