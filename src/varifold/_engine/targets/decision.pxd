cdef enum DecisionKind:
    MOST_PROBABLE = 0   # the label of the largest score
    COST_BY_LABEL = 1
    BALANCED = 2
    COST_MATRIX = 3


cdef class Decision:
    cdef readonly int kind
    cdef readonly object costs     # cost by label, or by true label and prediction
    cdef Py_ssize_t capacity       # labels there is memory for
    cdef double* offset            # [label]: log cost
    cdef double* cost              # [true label x capacity + prediction]
    cdef double* margin            # [label]: of the instance predicted last

    cdef int reserve(self, Py_ssize_t capacity) except -1
    cdef int look_up(self, list labels, Py_ssize_t c) except -1
    cdef int choose(self, int k, const double* probs, const double* counts) noexcept nogil
