from libc.stdint cimport int32_t, int64_t

from varifold._engine.admission cimport Admission
from varifold._engine.block cimport Block


cdef class Engine(Admission):
    cdef readonly list labels
    cdef dict label_index
    cdef bint calls_python       # the model calls Python code, which may raise
    cdef double* counts          # weight learned by label
    cdef double* out             # scores by label
    cdef double* probs
    cdef Py_ssize_t label_room

    cdef int reserve_labels(self, Py_ssize_t labels) except -1
    cdef int add_label(self, object y) except -1
    cdef int raise_pending(self) except -1 with gil
    cdef void learn_view(self, int y, double w) noexcept nogil
    cdef void count(self, int y, double w) noexcept nogil
    cdef int answer(self) noexcept nogil
    cdef int decide(self) noexcept nogil
    cdef int learn(self, object x, object y, double w) except -1
    cdef int ask(self, object x, bint probabilities) except -2
    cdef tuple explain(self, object x, int c)
    cdef int ready_row(self, int c, Py_ssize_t unknown) except -1 nogil
    cdef tuple walk(self, Block block, schedule, bint planned, bint learn, bint predict, bint probabilities)
    cdef int impute_rows(self, Py_ssize_t n, const int64_t* ptr, const int32_t* idx, const double* val, values) except -1
    cdef int check_slot(self, Py_ssize_t slot) except -1
    cdef tuple parts(self)
    cdef int take(self, names, labels, dict arrays) except -1
