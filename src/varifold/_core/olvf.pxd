from libc.stdint cimport int32_t

from varifold._core.heap cimport Heap
from varifold._core.model cimport BinaryRule
from varifold._core.view cimport View

cdef class OLVFRule(BinaryRule):
    cdef readonly double C, C_bar, lam, B
    cdef readonly bint kkt
    cdef bint sparse
    cdef Heap* heap        # one per problem when sparse
    cdef int heaps

    cdef void free_heaps(self) noexcept
    cdef int fit_heaps(self) except -1
    cdef int refill_heaps(self) except -1
    cdef inline Heap* aim(self, int c) noexcept nogil
    cdef inline void clear(self, int32_t slot, int c) noexcept nogil
    cdef inline void truncate(self, Heap* h, Py_ssize_t known, int c) noexcept nogil
