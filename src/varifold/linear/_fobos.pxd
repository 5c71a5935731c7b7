from varifold._engine.models.one_vs_rest cimport BinaryRule

cdef class FOBOSRule(BinaryRule):
    cdef readonly double eta, lam
    cdef readonly bint hinge
