from varifold._core.model cimport BinaryRule

cdef class OGDRule(BinaryRule):
    cdef readonly double c
