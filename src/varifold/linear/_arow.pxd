from libc.stdint cimport int32_t

from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class AROWRule(BinaryRule):
    cdef readonly double r
    cdef readonly Py_ssize_t max_dense   # 0: diagonal from the start
    cdef readonly bint diagonal
    cdef Py_ssize_t side                 # rows and columns held, a power of two
    cdef double* covariance              # [problem][side][side], NULL when diagonal
    cdef double* spread                  # scratch, [side]: covariance times x

    cdef int grow_covariance(self, int problems, Py_ssize_t side) except -1
    cdef void fall_back(self) noexcept nogil
    cdef double update_diagonal(self, View* v, int c, double y, double w) noexcept nogil
    cdef double terms(self, View* v) noexcept nogil
    cdef double update_full(self, View* v, int c, double y, double w) noexcept nogil
    cdef double widen(self, View* v, double* cov, Py_ssize_t side) noexcept nogil
    cdef bint definite(self, double* cov, double confidence, double beta, Py_ssize_t side) noexcept nogil
    cdef void uncouple(self, View* v, double* cov) noexcept nogil
