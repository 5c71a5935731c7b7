from varifold.linear._truncated cimport TruncatedRule

cdef class OLVFRule(TruncatedRule):
    cdef readonly double C, C_bar, lam, B
    cdef readonly bint kkt

    cdef void truncate(self, Py_ssize_t known, int c) noexcept nogil
