from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

cdef enum:
    TOGETHER = 256    # maximum number of problems that a rule scores or updates in one call


cdef class BinaryRule(Model):
    cdef readonly int problems         # 1 up to two labels, then one per label
    cdef int width                     # numbers per slot and problem
    cdef int globals                   # numbers per problem
    cdef Py_ssize_t plane              # from one number of a slot and problem to the next: the capacity for problems
    cdef Py_ssize_t stride             # numbers per slot: width times plane
    cdef double* state                 # [slot][width][problem]
    cdef double* shared                # [problem][globals]

    cdef int declare_rule(self, int width, int globals) except -1
    cdef void set_strides(self) noexcept nogil
    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil
    cdef void update_problems(self, View* v, int first, int m, const double* y, double w, double* f) noexcept nogil
    cdef int batch(self, View* v) noexcept nogil
    cdef void update_all(self, View* v, int y, double w, double* scores) noexcept nogil
    cdef double coefficient(self, int32_t slot, int c) noexcept nogil
    cdef void negate(self, int c) noexcept nogil
    cdef void start(self, int c) noexcept nogil
    cdef void split(self) noexcept nogil


cdef inline double* at(BinaryRule rule, int32_t slot, int c) noexcept nogil:
    """Return the first number of a slot in problem c; the others follow at distances of `plane`."""
    return rule.state + (<Py_ssize_t> slot * rule.stride + c)


cdef inline double score_one(BinaryRule rule, View* v, int c) noexcept nogil:
    """Return the score of problem c."""
    cdef double f
    rule.score_problems(v, c, 1, &f)
    return f


cdef inline double update_one(BinaryRule rule, View* v, int c, double y, double w) noexcept nogil:
    """Update problem c, in which the label is y (-1 or 1); return the score before it."""
    cdef double f
    rule.update_problems(v, c, 1, &y, w, &f)
    return f


cdef inline double capped(double loss) noexcept nogil:
    """Limit a loss: values of 1e150 must not make the means of a second-order rule overflow."""
    return loss if loss < 1e12 else 1e12


cdef inline double dot(View* v, double* first, Py_ssize_t stride) noexcept nogil:
    """Return the sum of first[slot * stride] * x over the instance, in slot order."""
    cdef double f = 0.0
    cdef Py_ssize_t i
    for i in range(v.n):
        f += first[v.slot[i] * stride] * v.x[i]
    return f
