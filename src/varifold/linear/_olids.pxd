cimport cython
from libc.stdint cimport int32_t, uint8_t

from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

@cython.final
cdef class OLIDSRule(TruncatedRule):
    cdef readonly double C, theta, lam, B
    cdef readonly bint by_column     # an indicator is 0 in rows where its column has another value
    cdef readonly double clip        # bound of a standardised indicator; 0 leaves indicators at 1
    cdef uint8_t* stays              # scratch, by entry of the view: the feature was present in the round before

    cdef inline bint has_levels(self) noexcept nogil
    cdef inline bint is_level(self, int32_t slot) noexcept nogil
    cdef inline double column_rows(self, int32_t slot, int c) noexcept nogil
    cdef double value(self, View* v, Py_ssize_t i, int c, double w) noexcept nogil
    cdef double variance(self, int32_t slot, int c) noexcept nogil
    cdef double next_variance(self, int32_t slot, int c, double x, double w) noexcept nogil
    cdef void count(self, int32_t slot, int c, double x, double w) noexcept nogil
    cdef void sum_up(self, int c) noexcept nogil
    cdef inline bint stayed(self, View* v, Py_ssize_t i) noexcept nogil
    cdef void mark_stays(self, View* v) noexcept nogil
    cdef double step_of(self, Py_ssize_t c, double f, double norm, double y, double w) noexcept nogil
    cdef void add_mass(self, int32_t slot, int c, double sign) noexcept nogil
    cdef void truncate(self, Py_ssize_t known, int c) noexcept nogil
