from libc.stdint cimport int32_t

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class FTRLADPRule(BinaryRule):
    cdef readonly double L1, L2, LP, kappa
    cdef readonly int decay
    cdef readonly bint per_coordinate, closed
    cdef double last_t, last_keep   # latest decay of the centre, and the round it was computed for

    cdef double weight(self, double* s, double* g) noexcept nogil
    cdef double decay_at(self, double t) noexcept nogil
    cdef double count_round(self, double* g, bint wrong) noexcept nogil
    cdef void test_drift(self, double* g, double rate, double spread, bint wrong) noexcept nogil
    cdef void learn_open(self, View* v, int c, const double* y, double w, double* f) noexcept nogil
    cdef void rebase(self, int c) noexcept nogil
