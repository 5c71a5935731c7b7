from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold.copula._dense cimport TILE
from varifold.copula._scores cimport Scores
from varifold._engine.state cimport State
from varifold._engine.view cimport View


cdef class Copula(Scores):
    cdef readonly Py_ssize_t batch
    cdef readonly double c, gamma_min
    cdef int64_t* updates              # [1]: M-steps done
    # the mini-batch: per row its observed nodes with their scores and variances
    cdef State row_arrays              # one entry per row; [row][node] arrays have rows of row_stride
    cdef Py_ssize_t row_stride
    cdef Py_ssize_t rows               # rows in the mini-batch
    cdef int64_t* row_n                # nodes observed
    cdef double* row_w                 # weight
    cdef uint8_t* row_done             # scratch: already part of a group
    cdef int32_t* row_node
    cdef double* row_z
    cdef double* row_v
    cdef double* full                  # scratch [row][node]: complete scores
    # scratch of a group of rows that observed the same nodes
    cdef double* moment                # [node][node], summed over the groups; only the lower triangle counts
    cdef double* cross                 # covariances of the absent with the observed nodes
    cdef double* regress               # slopes of the absent nodes on the observed ones
    cdef double tile[TILE * TILE]      # of the absent nodes' conditional covariances
    cdef double* variance              # [node]: variances summed over the rows
    cdef Py_ssize_t n_absent
    cdef int32_t* absent
    cdef int32_t* run_end              # [absent node]: end in `absent` of its run of consecutive nodes

    cdef int declare_rows(self, Py_ssize_t batch) except -1
    cdef int32_t learn(self, View* v, double w) noexcept nogil
    cdef int32_t learn_row(self, View* v, double w, bint commit) noexcept nogil
    cdef void keep_row(self, double w) noexcept nogil
    cdef double step_size(self, double k) noexcept nogil
    cdef void update(self) noexcept nogil
    cdef void move(self, double gamma) noexcept nogil
    cdef void mix_in(self, double gamma, double total) noexcept nogil
    cdef double regress_group(self, Py_ssize_t row) noexcept nogil
    cdef void split_nodes(self, const int32_t* nodes, Py_ssize_t o) noexcept nogil
    cdef void impute_row(self, Py_ssize_t row) noexcept nogil
    cdef void add_moments(self, double weight) noexcept nogil
    cdef void add_tile(self, double weight, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t at, Py_ssize_t n) noexcept nogil
    cdef int fill_batch(self, dict arrays) except -1
