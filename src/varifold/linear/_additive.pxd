from libc.stdint cimport int32_t, int64_t

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View
from varifold.linear._diagonal cimport Input

cdef enum:
    BINS = 8
    SAMPLE = 128

cdef class AdditiveRule(BinaryRule):
    cdef readonly double r
    cdef double ceiling                   # largest precision: older instances count less once it is reached
    cdef readonly Py_ssize_t max_binned   # slots from here on have no bins
    cdef double* sample                   # [slot][SAMPLE]: values drawn from all seen
    cdef double* edge                     # [slot][BINS - 1]: upper edges of all bins but the last
    cdef int64_t* count                   # [slot]: values seen

    cdef Input* inputs                    # scratch: values and bins of an instance
    cdef double* work                     # scratch [3][problem]
    cdef int32_t* wrong                   # scratch [problem]

    cdef Py_ssize_t collect(self, View* v) noexcept nogil
    cdef double measure(self, View* v, int c, double* confidence) noexcept nogil
    cdef void move(self, View* v, int c, double step, double r) noexcept nogil
    cdef void parts(self, View* v, int c, double* out) noexcept nogil
    cdef int bin_of(self, int32_t slot, double x) noexcept nogil
    cdef void sample_values(self, View* v) noexcept nogil
    cdef void place_edges(self, int32_t slot) noexcept nogil
