from libc.stdint cimport int32_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View


cdef class BinaryRule(Model):
    cdef readonly int problems         # 1 up to two labels, then one per label
    cdef int width                     # numbers per slot and problem
    cdef int globals                   # numbers per problem
    cdef Py_ssize_t plane              # from one number of a slot and problem to the next: room for problems
    cdef Py_ssize_t stride             # numbers per slot: width times plane
    cdef bint linear                   # the score is the sum of weight times value, weight the first number of a slot
    cdef double* state                 # [slot][width][problem]
    cdef double* shared                # [problem][globals]
    cdef Py_ssize_t tile_room          # numbers in `tile`, once there is one; 0: the rule wants none
    cdef double* tile                  # scratch of update_all(), from the third label on

    cdef int declare_rule(self, int width, int globals) except -1
    cdef void set_strides(self) noexcept nogil
    cdef int reserve_tile(self) except -1
    cdef double score(self, View* v, int c) noexcept nogil
    cdef double update(self, View* v, int c, double y, double w) noexcept nogil
    cdef bint update_all(self, View* v, int y, double w, double* scores, double* chances) noexcept nogil
    cdef void share(self, const double* scores, double* chances) noexcept nogil
    cdef double coefficient(self, int32_t slot, int c) noexcept nogil
    cdef void negate(self, int c) noexcept nogil
    cdef void start(self, int c) noexcept nogil
    cdef void split(self) noexcept nogil


cdef inline double* at(BinaryRule rule, int32_t slot, int c) noexcept nogil:
    """The first number of a slot in problem c; the others follow at distances of `plane`."""
    return rule.state + (<Py_ssize_t> slot * rule.stride + c)


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
