from varifold._engine.model cimport BinaryRule

cdef class FOBOSRule(BinaryRule):
    cdef readonly double eta, lam
    cdef readonly bint hinge
