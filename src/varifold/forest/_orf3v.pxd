from libc.stdint cimport int32_t, int64_t

from varifold.forest._pairs cimport Pairs
from varifold.forest._stumps cimport Stumps
from varifold.forest._feature_state cimport Unit
from varifold._engine.view cimport View


cdef class ORF3VModel(Stumps):
    cdef readonly double alpha
    cdef readonly bint tempered
    cdef readonly bint paired          # whether there are pairs
    cdef Pairs pairs
    cdef double* evidence              # [class] scratch

    cdef double* voting_row(self, View* v, Py_ssize_t i, Unit** owner) noexcept nogil
    cdef bint weigh(self, View* v, double* out) noexcept nogil
    cdef void share_out(self, View* v, int label, double* out) noexcept nogil
    cdef void renew_grids(self) noexcept nogil
    cdef void upto(self, int32_t s, double* edge, double* out) noexcept nogil
    cdef void try_pair(self, View* v, int64_t t) noexcept nogil
    cdef Py_ssize_t drawn(self, View* v, int64_t t, int first, int times) noexcept nogil
    cdef bint settled(self, int32_t s) noexcept nogil
    cdef bint edges_of(self, int32_t s, double* edge) noexcept nogil
    cdef void judge(self, View* v, int y, double w) noexcept nogil
    cdef double lesson(self, double* row, int y) noexcept nogil
    cdef void adjust(self, int y, double w) noexcept nogil
