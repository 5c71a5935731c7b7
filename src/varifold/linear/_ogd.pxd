from varifold._engine.one_vs_rest cimport BinaryRule

cdef class OGDRule(BinaryRule):
    cdef readonly double c
