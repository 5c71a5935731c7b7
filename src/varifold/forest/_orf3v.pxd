from libc.stdint cimport int32_t, int64_t

from varifold.forest._pairs cimport Pairs
from varifold.forest._stumps cimport Stumps
from varifold.forest._feature_state cimport FeatureState
from varifold.forest._tdigest cimport Point
from varifold._engine.view cimport View


cdef class ORF3VModel(Stumps):
    cdef readonly double alpha
    cdef readonly bint learns_temperature
    cdef readonly bint paired          # whether there are pairs
    cdef Pairs pairs
    # scratch
    cdef double* evidence              # [class]
    cdef Point* sorted_points          # of a feature's digests, with pairs only

    cdef double* voting_row(self, View* v, Py_ssize_t i, FeatureState** owner) noexcept nogil
    cdef bint sum_votes(self, View* v, double* out) noexcept nogil
    cdef void share_pair_votes(self, View* v, int label, double* out) noexcept nogil
    cdef void renew_grids(self) noexcept nogil
    cdef void shares_up_to(self, int32_t s, double* edge, double* out) noexcept nogil
    cdef void try_pair(self, View* v, int64_t t) noexcept nogil
    cdef Py_ssize_t drawn(self, View* v, int64_t t, int first, int times) noexcept nogil
    cdef bint settled(self, int32_t s) noexcept nogil
    cdef bint edges_of(self, int32_t s, double* edge) noexcept nogil
    cdef void judge(self, View* v, int y, double w) noexcept nogil
    cdef double information(self, double* row, int y) noexcept nogil
    cdef void learn_factors(self, int y, double w) noexcept nogil
