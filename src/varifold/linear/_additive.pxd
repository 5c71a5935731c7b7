from libc.stdint cimport int32_t, int64_t

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef enum:
    BINS = 8
    SAMPLE = 128

cdef class AdditiveRule(BinaryRule):
    cdef readonly double r
    cdef double ceiling                   # largest precision: what is older weighs less and less
    cdef readonly Py_ssize_t max_binned   # slots from here on have no bins
    cdef double* sample                   # [slot][SAMPLE]: values drawn from all seen
    cdef double* edge                     # [slot][BINS - 1]
    cdef int64_t* met                     # [slot]: values seen
    cdef Py_ssize_t binned                # slots there is a sample for

    cdef int bin_of(self, int32_t slot, double x) noexcept nogil
    cdef void absorb(self, View* v) noexcept nogil
    cdef void place_edges(self, int32_t slot) noexcept nogil
