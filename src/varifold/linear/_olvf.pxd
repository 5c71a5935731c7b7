from varifold.linear._truncated cimport SparseRule
from varifold._engine.view cimport View

cdef class OLVFRule(SparseRule):
    cdef readonly double C, C_bar, lam, B
    cdef readonly bint kkt

    cdef void truncate(self, Py_ssize_t known, int c) noexcept nogil
