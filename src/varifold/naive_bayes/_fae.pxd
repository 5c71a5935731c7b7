from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.view cimport View
from varifold.naive_bayes._class_table cimport PresenceTable
from varifold.naive_bayes._members cimport Members

cdef struct Worth:
    float chi2
    int32_t slot

cdef class FAEModel(PresenceTable):
    cdef Members members
    cdef readonly Py_ssize_t best        # features of a new member, at the most (M)
    cdef readonly Py_ssize_t maturity    # instances before a member votes (m)
    cdef readonly Py_ssize_t patience    # judgements in a row below the threshold that remove a member (p)
    cdef readonly double change          # share of the best features whose change brings a new member (f)
    cdef readonly Py_ssize_t growth      # instances before accuracy may bring a new one (r)
    cdef readonly bint hard              # members vote for a label, not by their probabilities
    cdef uint8_t* recent                 # ring of the ensemble's last answers, twice the members' span
    cdef readonly int64_t answered       # answers so far
    cdef Worth* worth                    # scratch [slot]
    cdef int32_t* chosen                 # scratch [slot]
    cdef uint8_t* here                   # scratch [slot], 0 between calls: which slots the instance has
    cdef double* chance                  # scratch [class]
    cdef double* mean                    # scratch [class]
    cdef double* product                 # scratch [class]
    cdef double* evidence                # scratch [slot]: of a member's features for a label
    cdef double* part                    # scratch [slot]: what a feature adds to a score
    cdef int32_t* answer                 # scratch [member]
    cdef double* say                     # scratch [member]

    cdef void mark(self, View* v, bint on) noexcept nogil
    cdef void posterior(self, Py_ssize_t j, Py_ssize_t start, double* out) noexcept nogil
    cdef bint mature(self, Py_ssize_t j) noexcept nogil
    cdef double weigh(self) noexcept nogil
    cdef void vote(self, double* out) noexcept nogil
    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil
    cdef double recent_accuracy(self, Py_ssize_t span) noexcept nogil
    cdef Py_ssize_t choose(self) noexcept nogil
    cdef bint renewal_due(self, Py_ssize_t chosen) noexcept nogil
    cdef void make_way(self) noexcept nogil
    cdef double gather_evidence(self, Py_ssize_t j, Py_ssize_t start, int label) noexcept nogil
    cdef void explain_member(self, Py_ssize_t j, Py_ssize_t start, int label, double weight) noexcept nogil
