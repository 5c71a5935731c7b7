from libc.stdint cimport int32_t

from varifold._engine.conformal.evidence cimport Evidence
from varifold._engine.conformal.recent_scores cimport RecentScores
from varifold._engine.state cimport State


cdef class Conformal:
    cdef readonly tuple coverages   # ascending
    cdef int k                      # how many there are
    cdef bint two_sided             # intervals around a prediction; otherwise sets of labels
    cdef Evidence evidence
    cdef State arrays
    cdef RecentScores recent        # normalised scores
    cdef double* miss               # [k][2] share of scores to leave out, below and above
    # scratch
    cdef double* magnitudes         # absolute values of the scores, ascending
    cdef double* low                # [k] of the instance at hand
    cdef double* aim                # [k] share that one bound should miss
    cdef double* high               # [k]; of a set the largest score that a label may have

    cdef int declare_scores(self) except -1
    cdef void expect(self, const int32_t* slots, Py_ssize_t n, double level) noexcept nogil
    cdef void bound_number(self, double prediction) noexcept nogil
    cdef void bound_scores(self) noexcept nogil
    cdef Py_ssize_t memo_size(self) noexcept nogil
    cdef void write_memo(self, double* out) noexcept nogil
    cdef void read_memo(self, const double* memo) noexcept nogil
    cdef void observe_number(self, const int32_t* slots, Py_ssize_t n, double prediction, double y) noexcept nogil
    cdef void observe_label(self, const int32_t* slots, Py_ssize_t n, double score) noexcept nogil
    cdef double quantile(self, const double* scores, double level) noexcept nogil
    cdef double half_width(self, double miss, bint above) noexcept nogil
    cdef double adapted(self, double miss, double aim, bint missed, double most) noexcept nogil
    cdef void adapt_number(self, int j, double prediction, double y) noexcept nogil
    cdef void adapt_label(self, int j, double score) noexcept nogil
    cdef void start(self, double size) noexcept nogil
    cdef void keep(self, double score) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
