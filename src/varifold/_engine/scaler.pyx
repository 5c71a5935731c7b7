"""The online scaler: each observed value joins its feature's statistics before it is scaled."""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._numeric.memory cimport resize_zeroed

KINDS = {"none": NONE, "standard": STANDARD, "minmax": MINMAX}


cdef class Scaler:
    """Per-slot running statistics; ``standard`` is Welford's mean and deviation, ``minmax`` the range so far."""

    def __cinit__(self, str kind="standard", double clip=3.0):
        self.kind = KINDS[kind]
        self.clip = clip

    def __dealloc__(self):
        free(self.stat)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if self.kind == NONE or capacity <= self.capacity:
            return 0
        if resize_zeroed(<void**> &self.stat, self.capacity * sizeof(Stat), capacity * sizeof(Stat)) < 0:
            raise MemoryError
        self.capacity = capacity
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.kind != NONE:
            memset(&self.stat[slot], 0, sizeof(Stat))

    def dump(self, Py_ssize_t size):
        """The statistics of the first `size` slots, an array of three columns (no rows without scaling)."""
        if self.kind == NONE:
            return np.zeros((0, 3))
        out = np.zeros((size, 3))
        cdef double[:, ::1] view = out
        memcpy(&view[0, 0], self.stat, size * sizeof(Stat))
        return out

    def fill(self, table, Py_ssize_t capacity):
        """Take what dump() gave."""
        cdef double[:, ::1] view = np.ascontiguousarray(table, dtype=np.float64)
        if view.shape[1] != 3 or view.shape[0] > (0 if self.kind == NONE else capacity):
            raise ValueError("the statistics do not fit the scaler")
        self.grow(capacity)
        if self.kind != NONE and view.shape[0]:
            memcpy(self.stat, &view[0, 0], view.shape[0] * sizeof(Stat))

    def nbytes(self):
        """Bytes held."""
        return self.capacity * sizeof(Stat)
