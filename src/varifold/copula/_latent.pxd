from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold.copula._scores cimport Scores
from varifold._engine.view cimport View


cdef class Copula(Scores):
    cdef readonly Py_ssize_t batch
    cdef readonly double c, gamma_min
    cdef int64_t updates               # of sigma so far, M-steps done
    # the mini-batch: rows of (node, score, variance), observed nodes only
    cdef Py_ssize_t rows
    cdef Py_ssize_t* row_n
    cdef double* row_w
    cdef uint8_t* row_done
    cdef int32_t* row_node
    cdef double* row_z
    cdef double* row_v
    # scratch
    cdef double* moment                # room x room
    cdef double* cross
    cdef double* regress
    cdef double* product
    cdef double* full                  # batch x room
    cdef double* spread                # variances of a group of rows, summed
    cdef Py_ssize_t n_absent
    cdef int32_t* absent

    cdef int fit_rows(self, Py_ssize_t old, Py_ssize_t room) except -1
    cdef int32_t learn(self, View* v, double w) noexcept nogil
    cdef void keep_row(self, double w) noexcept nogil
    cdef void update(self) noexcept nogil
    cdef double take_group(self, Py_ssize_t row) noexcept nogil
    cdef void add_moments(self, double weight) noexcept nogil
