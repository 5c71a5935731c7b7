from varifold._core.leaning cimport LeaningRule

cdef class FOBOSRule(LeaningRule):
    cdef readonly double eta, lam
    cdef readonly bint hinge
