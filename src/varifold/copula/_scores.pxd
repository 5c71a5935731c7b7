from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold.copula._marginals cimport Marginals, Place
from varifold.copula._active_set cimport ActiveSet
from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

cdef enum:
    CACHED = 24            # maximum number of cached inverses,
    FEW = 4                # and its value when they are large
    SMALL = 100_000        # numbers in all of them beyond which they are large

# The inverse of the observed nodes' correlation, valid while the correlation stays the same.
cdef struct Inverse:
    int64_t version        # of the correlation it was made from; 0 none
    Py_ssize_t n
    int32_t* node
    double* matrix         # n x n


cdef class Scores(ActiveSet):
    cdef readonly Marginals marginals
    cdef readonly int sweeps
    cdef State squares                 # [node][node] arrays
    cdef Py_ssize_t stride             # numbers per row of sigma
    cdef double* sigma                 # [node][node]: the correlation
    # the instance at hand
    cdef readonly Py_ssize_t n         # nodes observed
    cdef int32_t* node                 # ascending
    cdef double* given                 # value
    cdef double* z                     # score
    cdef double* v                     # variance of the score, 0 for a point
    cdef Place* place
    cdef double* score                 # [node]: all scores, those of absent nodes by regression
    # the instance whose scores are in `score`
    cdef int64_t memo_tick
    cdef Py_ssize_t memo_n
    cdef int32_t* memo_slot
    cdef double* memo_raw
    # scratch
    cdef uint8_t* observed             # [node]: zero between calls
    cdef Inverse inverse[CACHED]
    cdef int cached                    # how many of them are used
    cdef int turn                      # the inverse to be replaced next
    cdef double* work                  # [node]
    cdef double* schur                 # [node][node]: scratch of the inversion

    cdef int declare_inverses(self, Py_ssize_t wanted) except -1
    cdef int attach(self, Space space) except -1
    cdef int grow(self, Py_ssize_t slots) except -1
    cdef int reserve_graph(self, Py_ssize_t nodes) except -1
    cdef void gather(self, View* v) noexcept nogil
    cdef void observe(self, View* v) noexcept nogil
    cdef double* invert(self) noexcept nogil
    cdef void invert_sigma(self, double* a) noexcept nogil
    cdef void sweep(self, double* inverse, bint alone) noexcept nogil
    cdef void regress_absent(self, double* inverse) noexcept nogil
    cdef double absent_variance(self, Py_ssize_t node, double* inverse) noexcept nogil
