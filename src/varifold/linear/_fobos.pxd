from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class FOBOSRule(BinaryRule):
    cdef readonly double eta, lam
    cdef readonly bint hinge

    cdef void score_problems(self, View* v, Py_ssize_t first, Py_ssize_t m, double* out) noexcept nogil
