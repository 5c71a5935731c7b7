from libc.stdint cimport int32_t

from varifold._engine.space cimport Space
from varifold._engine.view cimport View


cdef class Model:
    cdef Space space
    cdef readonly int classes          # labels met so far
    cdef Py_ssize_t capacity           # slots there is room for
    cdef readonly bint sees_empty      # answers and learns instances without a known feature itself
    cdef readonly bint wants_columns   # needs View.column
    cdef bint alone                    # an engine's own model, not a part of another: its vanished slots are dropped
    cdef int32_t* gone                 # slots given up since the engine last looked
    cdef Py_ssize_t n_gone, gone_room

    cdef int attach(self, Space space) except -1
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef int add_class(self) except -1
    cdef void forget(self, int32_t slot) noexcept nogil
    cdef void give_up(self, int32_t slot) noexcept nogil
    cdef void scores(self, View* v, double* out) noexcept nogil
    cdef void proba(self, double* scores, double* out) noexcept nogil
    cdef void learn(self, View* v, int y, double w) noexcept nogil
    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil
    cdef double magnitude(self, int32_t slot) noexcept nogil
    cdef void contributions(self, View* v, int label, double* out) noexcept nogil
    cdef dict beyond(self, View* v, int label)
    cdef void complete(self, View* v, double* value, double* low, double* high) noexcept nogil


cdef class BinaryRule(Model):
    cdef readonly int problems         # 1 up to two labels, then one per label
    cdef int width                     # numbers per slot and problem
    cdef int globals                   # numbers per problem
    cdef double* state                 # [slot][problem][width]
    cdef double* shared                # [problem][globals]

    cdef double score(self, View* v, int c) noexcept nogil
    cdef void update(self, View* v, int c, double y, double w) noexcept nogil
    cdef double coefficient(self, int32_t slot, int c) noexcept nogil
    cdef void negate(self, int c) noexcept nogil
    cdef void start(self, int c) noexcept nogil


cdef inline double* at(BinaryRule rule, int32_t slot, int c) noexcept nogil:
    return rule.state + (<Py_ssize_t> slot * rule.problems + c) * rule.width


cdef inline double capped(double loss) noexcept nogil:
    """Values of 1e150 must not carry the means of a second-order rule beyond what a double holds."""
    return loss if loss < 1e12 else 1e12


cdef inline double dot(View* v, double* first, Py_ssize_t stride) noexcept nogil:
    """Sum of first[slot * stride] * x over the instance, in slot order."""
    cdef double f = 0.0
    cdef Py_ssize_t i
    for i in range(v.n):
        f += first[v.slot[i] * stride] * v.x[i]
    return f


# Function-pointer forms, so that a model made of others can call them without the GIL.
ctypedef void (*scores_call)(void*, View*, double*) noexcept nogil
ctypedef void (*proba_call)(void*, double*, double*) noexcept nogil
ctypedef void (*learn_call)(void*, View*, int, double) noexcept nogil
ctypedef void (*forget_call)(void*, int32_t) noexcept nogil
ctypedef double (*magnitude_call)(void*, int32_t) noexcept nogil
ctypedef void (*contributions_call)(void*, View*, int, double*) noexcept nogil

cdef struct Calls:
    scores_call scores
    proba_call proba
    learn_call learn
    forget_call forget
    magnitude_call magnitude
    contributions_call contributions

cdef Calls model_calls() noexcept
