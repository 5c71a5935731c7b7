from libc.stdint cimport int32_t

from varifold._numeric.heap cimport Heap
from varifold._engine.one_vs_rest cimport BinaryRule

cdef class SparseRule(BinaryRule):
    cdef bint sparse
    cdef Heap* heap        # one a problem when sparse
    cdef int heaps

    cdef void free_heaps(self) noexcept
    cdef int fit_heaps(self) except -1
    cdef int refill_heaps(self) except -1
    cdef inline Heap* aim(self, int c) noexcept nogil
    cdef bint held(self, int32_t slot, int c) noexcept nogil
    cdef void place(self, int32_t slot, int c) noexcept nogil
    cdef void reorder(self, int c) noexcept nogil
    cdef void clear(self, int32_t slot, int c) noexcept nogil
    cdef void keep_largest(self, Py_ssize_t keep, int c) noexcept nogil
