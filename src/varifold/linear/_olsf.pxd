from varifold.linear._truncated cimport SparseRule

cdef class OLSFRule(SparseRule):
    cdef readonly int mode
    cdef readonly double C, lam, B
