from varifold._engine.view cimport View
from varifold.linear._truncated cimport TruncatedRule

# Sums over an instance that do not depend on the problem.
cdef struct Norms:
    double old           # squared norm of the known features
    double new           # squared norm of the new features
    Py_ssize_t n_old     # number of known features

cdef class OLVFRule(TruncatedRule):
    cdef readonly double C, C_bar, lam, B
    cdef readonly bint kkt

    cdef void measure(self, View* v, int c, double* f, double* bar, Norms* norms) noexcept nogil
    cdef void move(self, View* v, int c, double bar, Norms* norms, bint right, double y, double loss, double unit,
                   double w) noexcept nogil
    cdef void truncate(self, Py_ssize_t known, int c, double radius) noexcept nogil
