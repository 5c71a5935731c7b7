from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

# Of an instance in one problem.
cdef struct Sums:
    double score
    double bar           # space weights of the features present
    double old           # squared norm of the known features
    double new           # and of the new ones
    Py_ssize_t n_old     # known features

cdef class OLVFRule(TruncatedRule):
    cdef readonly double C, C_bar, lam, B
    cdef readonly bint kkt

    cdef Sums measure(self, View* v, int c) noexcept nogil
    cdef void move(self, View* v, int c, Sums* sums, bint right, double y, double loss, double unit, double w) noexcept nogil
    cdef void truncate(self, Py_ssize_t known, int c, double radius) noexcept nogil
