from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold.copula._marginals cimport Marginals, Place
from varifold.copula._active_set cimport Nodes
from varifold._engine.space cimport Space
from varifold._engine.view cimport View

# An inverse of the correlation of the nodes observed, kept while the correlation stands.
cdef struct Factor:
    int64_t version        # of the correlation it was made from; 0 none
    Py_ssize_t n
    int32_t* node
    double* inverse        # n x n


cdef class Scores(Nodes):
    cdef readonly Marginals marginals
    cdef readonly int sweeps
    cdef double* sigma                 # room x room
    # the instance at hand
    cdef readonly Py_ssize_t n         # nodes observed
    cdef int32_t* node                 # ascending
    cdef double* given                 # value
    cdef double* z                     # score
    cdef double* v                     # its variance, 0 for a point
    cdef Place* place
    cdef uint8_t* observed             # by node
    cdef double* score                 # by node: all scores, the absent ones by regression
    cdef int64_t memo_tick
    cdef Py_ssize_t memo_n
    cdef int32_t* memo_slot
    cdef double* memo_raw
    # scratch
    cdef Factor factor[4]
    cdef int turn
    cdef double* work
    cdef double* scratch

    cdef int attach(self, Space space) except -1
    cdef int grow(self, Py_ssize_t slots) except -1
    cdef int make_room(self, Py_ssize_t room) except -1
    cdef void gather(self, View* v) noexcept nogil
    cdef void observe(self, View* v) noexcept nogil
    cdef double* invert(self) noexcept nogil
    cdef void sweep(self, double* inverse, bint alone) noexcept nogil
    cdef void regress_absent(self, double* inverse) noexcept nogil
    cdef double absent_variance(self, Py_ssize_t node, double* inverse) noexcept nogil
