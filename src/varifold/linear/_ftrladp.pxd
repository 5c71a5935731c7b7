from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class FTRLADPRule(BinaryRule):
    cdef readonly double L1, L2, LP, kappa
    cdef readonly int decay
    cdef readonly bint per_coordinate, closed

    cdef double weight(self, double* s, double* g) noexcept nogil
    cdef double count_round(self, double* g, bint wrong) noexcept nogil
    cdef void rebase(self, int c) noexcept nogil
