"""Nodes of all trees of a forest, in one pool."""

from libc.stdint cimport int32_t, uint8_t

from varifold._engine.state cimport State

cdef class Nodes:
    cdef State arrays
    cdef int32_t* key          # of the column tested (see Row); 0: a leaf, or the column was evicted
    cdef double* value         # threshold: a number up to it goes left; or the slot of the level that goes left
    cdef uint8_t* way          # see Way
    cdef int32_t* left         # left child, the right one comes next; 0: a leaf. Of a free pair: the next free pair
    cdef double* counts        # [node][class]: weight of the labels seen; of a regressor: weight, mean target
    cdef readonly Py_ssize_t used      # nodes allocated so far; pairs start at even numbers, pair 0 is never used
    cdef readonly int32_t free_pair    # first of the free pairs, 0 for none
    cdef readonly Py_ssize_t n_free    # free pairs

    cdef int reserve_pairs(self, Py_ssize_t pairs) except -1
    cdef Py_ssize_t free_pairs(self) noexcept nogil
    cdef int32_t take_pair(self) noexcept nogil
    cdef void release_pair(self, int32_t pair) noexcept nogil
    cdef void release_tree(self, int32_t root) noexcept nogil
    cdef double* counts_of(self, int32_t node) noexcept nogil
