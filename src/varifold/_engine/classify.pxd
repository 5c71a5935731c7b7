from varifold._engine.intake cimport Intake


cdef class Engine(Intake):
    cdef readonly list labels
    cdef dict label_index
    cdef double* counts          # weight learned by label
    cdef bint listens            # the model calls out to Python and may meet exceptions there
    cdef double* out             # scores by label
    cdef double* probs
    cdef Py_ssize_t out_room

    cdef int add_label(self, object y) except -1
    cdef int hear(self) except -1
    cdef void learn_view(self, int y, double w) noexcept nogil
    cdef void note(self, int y, double w) noexcept nogil
    cdef int best(self) noexcept nogil
    cdef int answer(self) noexcept nogil
    cdef int decide(self) noexcept nogil
