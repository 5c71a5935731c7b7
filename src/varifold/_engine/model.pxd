from libc.stdint cimport int32_t

from varifold._engine.space cimport Space
from varifold._engine.state cimport State
from varifold._engine.view cimport View


cdef class Model:
    cdef Space space
    cdef State arrays                  # the declared state
    cdef readonly int classes          # labels learned so far
    cdef Py_ssize_t capacity           # slots there is room for
    cdef readonly bint sees_empty      # answers and learns instances without a known feature itself
    cdef readonly bint wants_columns   # needs View.column
    cdef readonly bint prepares        # prepare() must be called before learn()
    cdef bint alone                    # an engine's own model, not a part of another: its evicted slots are dropped
    cdef int32_t* evicted              # slots marked since the engine last looked
    cdef Py_ssize_t n_evicted, evicted_room

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
    cdef double magnitude(self, int32_t slot) noexcept nogil
    cdef void contributions(self, View* v, int label, double* out) noexcept nogil
    cdef dict absent_contributions(self, View* v, int label)
    cdef void impute(self, View* v, double* value, double* low, double* high) noexcept nogil


# Function-pointer forms, so that a model made of others can call them without the GIL.
ctypedef void (*scores_call)(void*, View*, double*) noexcept nogil
ctypedef void (*proba_call)(void*, double*, double*) noexcept nogil
ctypedef void (*learn_call)(void*, View*, int, double) noexcept nogil
ctypedef int (*prepare_call)(void*, const int32_t*, Py_ssize_t, Py_ssize_t, int) except -1 nogil
ctypedef void (*forget_call)(void*, int32_t) noexcept nogil
ctypedef double (*magnitude_call)(void*, int32_t) noexcept nogil
ctypedef void (*contributions_call)(void*, View*, int, double*) noexcept nogil

cdef struct Calls:
    scores_call scores
    proba_call proba
    learn_call learn
    prepare_call prepare
    forget_call forget
    magnitude_call magnitude
    contributions_call contributions

cdef Calls model_calls() noexcept
