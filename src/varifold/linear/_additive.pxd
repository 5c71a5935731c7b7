from libc.stdint cimport int32_t, int64_t

from varifold._engine.view cimport View
from varifold.linear._diagonal cimport DiagonalRule

cdef enum:
    BINS = 8
    SAMPLE = 128

cdef class AdditiveRule(DiagonalRule):
    cdef readonly Py_ssize_t max_binned   # slots from here on have no bins
    cdef double* sample                   # [slot][SAMPLE]: random sample of the values seen
    cdef double* edge                     # [slot][BINS - 1]: upper edges of all bins but the last
    cdef int64_t* seen                    # [slot]: number of values seen

    cdef void parts(self, View* v, int c, double* out) noexcept nogil
    cdef int bin_of(self, int32_t slot, double x) noexcept nogil
    cdef void sample_values(self, View* v) noexcept nogil
    cdef void place_edges(self, int32_t slot) noexcept nogil
