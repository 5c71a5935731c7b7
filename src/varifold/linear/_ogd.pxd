from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class OGDRule(BinaryRule):
    cdef readonly double c

    cdef void descend(self, View* v, int c, double error, double w) noexcept nogil
