from libc.stdint cimport int32_t, int64_t

from varifold.forest._tdigest cimport Digest, Point
from varifold._engine.view cimport View

cdef enum:
    BINS = 4                           # of a feature, by quantiles
    CELLS = 16
    ROWS = 25                          # cells, then bins of the first and of the second feature, then all
    TRIAL = 100                        # occurrences of a pair on trial
    SETTLED = 30                       # values of a feature before it may be in a pair

# Two features whose values are counted together, by class, over a grid. a = 0: an unused entry.
cdef struct Pair:
    int32_t a, b                       # slots, a < b
    int64_t seen                       # rounds with both
    double credit, square, credit_weight   # gain of log likelihood by its vote, its square, and their divisor
    double factor, certainty           # on its vote, and what that rests on
    double edge[2][BINS - 1]
    bint stale                         # while an instance is learned: edges are due to be placed again


cdef class Pairs:
    cdef readonly int limit            # K pairs that vote; as many are on trial behind them
    cdef readonly double alpha
    cdef int wide                      # capacity for classes
    cdef Pair* pair                    # [2 limit]
    cdef double* count                 # [2 limit][ROWS][wide]
    # scratch
    cdef int* cell                     # [2 limit] of the instance looked up last, -1: not both there
    cdef double* lift                  # [2 limit][wide] evidence of both beyond that of each
    cdef double* sum                   # [wide] of the votes
    cdef double* naive                 # [wide]
    cdef double* moved                 # [ROWS][wide] counts laid out for new edges

    cdef int widen(self, int wide) except -1
    cdef bint look_up(self, View* v, int classes, double* mass, double total, bint trials) noexcept nogil
    cdef void lift_of(self, int p, int classes, double* mass, double total) noexcept nogil
    cdef void judge(self, int classes, double* prob, int y, double w, bint tempered) noexcept nogil
    cdef void absorb(self, int y, double w) noexcept nogil
    cdef double worth(self, int p) noexcept nogil
    cdef void decide(self) noexcept nogil
    cdef void move(self, int place, int p) noexcept nogil
    cdef void clear(self, int p) noexcept nogil
    cdef void leave(self, int32_t slot) noexcept nogil
    cdef void share_out(self, int p, double* share_a, double* share_b) noexcept nogil
    cdef int vacancy(self) noexcept nogil
    cdef bint known(self, int32_t a, int32_t b) noexcept nogil

cdef double START                      # first factor on a pair's vote

cdef bint quantile_edges(Digest* digest, int classes, Point* scratch, double* edge) noexcept nogil
cdef void overlap_shares(double* old_edge, double* old_upto, double* new_edge, double* new_upto, double* share) noexcept nogil
cdef Py_ssize_t position(View* v, int32_t slot) noexcept nogil
