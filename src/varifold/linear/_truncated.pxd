from libc.stdint cimport int32_t

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._numeric.heap cimport Heap

cdef class TruncatedRule(BinaryRule):
    cdef int scale               # place, among the numbers per problem, of the factor on its weights
    cdef bint sparse             # whether weights are truncated; if not, there are no heaps
    cdef Heap* heap              # [problem], when sparse
    cdef Py_ssize_t heaps        # number of heaps
    cdef Py_ssize_t heap_capacity    # allocated heaps

    cdef int reserve_heaps(self, Py_ssize_t problems, Py_ssize_t capacity) except -1
    cdef void rebuild_heaps(self) noexcept nogil
    cdef Heap* heap_of(self, int c) noexcept nogil
    cdef bint is_kept(self, int32_t slot, int c) noexcept nogil
    cdef void update_heap(self, int32_t slot, int c) noexcept nogil
    cdef void reorder(self, int c) noexcept nogil
    cdef void clear(self, int32_t slot, int c) noexcept nogil
    cdef void scale_weights(self, int c, double factor) noexcept nogil
    cdef void keep_largest(self, Py_ssize_t keep, int c) noexcept nogil
