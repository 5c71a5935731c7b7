from varifold._engine.core cimport Core
from varifold._engine.decision cimport Decision


cdef class Answers(Core):
    cdef readonly list labels
    cdef dict label_index
    cdef double* counts          # weight learned by label
    cdef double* out             # scores by label
    cdef double* probs
    cdef Py_ssize_t label_room
    cdef Decision decision       # how the answer follows from the probabilities
    cdef bint foreseen           # the instance at hand has a set of labels
    cdef double true_score       # one less the probability of its true label

    cdef int reserve_labels(self, Py_ssize_t labels) except -1
    cdef int add_label(self, object y) except -1
    cdef void learn_view(self, int y, double w) noexcept nogil
    cdef void count(self, int y, double w) noexcept nogil
    cdef void score(self) noexcept nogil
    cdef void to_probabilities(self) noexcept nogil
    cdef int answer(self) noexcept nogil
    cdef int decide(self) noexcept nogil
    cdef void foresee(self, int y) noexcept nogil
    cdef int foresee_gathered(self, int y) except -1 nogil
    cdef int take(self, names, list labels, dict arrays) except -1
