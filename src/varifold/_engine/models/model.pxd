from libc.stdint cimport int32_t, int64_t

from varifold._engine.names.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View

cdef enum:
    NEW_LABEL = -1                     # in place of a class: of a label that has not been learned,
    NO_LABEL = -2                      # and of an instance without a label


cdef class Model:
    cdef Space space
    cdef State arrays                  # the declared state
    cdef Components components         # models that it is made of; None for most
    cdef readonly int classes          # labels learned so far
    cdef Py_ssize_t capacity           # slots there is memory for
    cdef readonly bint sees_empty      # predicts and learns instances without a known feature itself
    cdef readonly bint wants_columns   # needs View.column
    cdef readonly bint prepares        # prepare() must be called before learn()
    cdef readonly bint learns_unlabelled   # learn_unlabelled() does something
    cdef bint alone                    # an engine's own model, not a part of another: its evicted slots are dropped
    cdef int32_t* evicted              # slots marked since the engine last dropped them
    cdef Py_ssize_t n_evicted, evicted_capacity

    cdef int hold(self, str prefix, Model model) except -1
    cdef int attach(self, Space space) except -1
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int reserve_class(self) except -1
    cdef int add_class(self) except -1
    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void mark_evicted(self, int32_t slot) noexcept nogil
    cdef void scores(self, View* v, double* out) noexcept nogil
    cdef void proba(self, double* scores, double* out) noexcept nogil
    cdef void learn(self, View* v, int y, double w) noexcept nogil
    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil
    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil
    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil
    cdef void write_memo(self, double* out) noexcept nogil
    cdef void read_memo(self, const double* memo, int classes) noexcept nogil
    cdef double magnitude(self, int32_t slot) noexcept nogil
    cdef void contributions(self, View* v, int label, double* out) noexcept nogil
    cdef dict absent_contributions(self, View* v, int label)
    cdef void impute(self, View* v, double* value, double* low, double* high) noexcept nogil


cdef class Components:
    cdef readonly list models          # a position may be empty: None
    cdef list prefixes                 # of the names of their arrays
    cdef void** inner                  # the models again, for calls without the GIL
    cdef readonly int count
    cdef int64_t* disabled             # [component] 1: out of use; NULL if none can be

    cdef int add(self, str prefix, Model model) except -1
    cdef int put(self, int i, Model model) except -1
    cdef bint used(self, int i) noexcept nogil
    cdef int attach(self, Space space) except -1
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int reserve_class(self) except -1
    cdef int add_class(self) except -1
    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil
    cdef void forget(self, int32_t slot) noexcept nogil
    # one component
    cdef int prepare_component(self, int i, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil
    cdef void scores(self, int i, View* v, double* out) noexcept nogil
    cdef void proba(self, int i, double* scores, double* out) noexcept nogil
    cdef void learn(self, int i, View* v, int y, double w) noexcept nogil
    cdef void learn_scored(self, int i, View* v, int y, double w, double* scores, double* probs) noexcept nogil
    cdef void learn_unlabelled(self, int i, View* v, double w) noexcept nogil
    cdef double magnitude(self, int i, int32_t slot) noexcept nogil
    cdef void contributions(self, int i, View* v, int label, double* out) noexcept nogil
