from varifold._core.leaning cimport LeaningRule

cdef class OGDRule(LeaningRule):
    cdef readonly double c
