from varifold._engine.model cimport BinaryRule

cdef class OGDRule(BinaryRule):
    cdef readonly double c
