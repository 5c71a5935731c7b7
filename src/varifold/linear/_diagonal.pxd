from libc.stdint cimport int32_t

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

# One input of an instance: a value, and the position of its weight's mean and precision.
cdef struct Input:
    double x
    Py_ssize_t pair    # position of its mean and precision, counted over all slots
    int32_t slot
    int32_t entry      # its entry of the view; -1 for an absent column

cdef class DiagonalRule(BinaryRule):
    cdef readonly double r
    cdef double ceiling      # largest precision: once it is reached, older instances count less
    cdef Input* inputs       # scratch: the instance as the rule sees it
    cdef Py_ssize_t count    # inputs

    cdef int declare_inputs(self, int pairs, int most, double r, double memory) except -1
    cdef void collect(self, View* v) noexcept nogil
    cdef void measure(self, View* v, int c, double* f, double* variance) noexcept nogil
    cdef void move(self, int c, double step, double r) noexcept nogil


cdef inline double* pair_at(DiagonalRule rule, const Input* p, int c, Py_ssize_t plane) noexcept nogil:
    """Return the mean of an input's weight in problem c; the precision is `plane` further on."""
    return rule.state + (p.pair * plane + c)
