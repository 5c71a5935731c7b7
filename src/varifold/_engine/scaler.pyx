"""Online scaler: each value updates its feature's statistics before it is scaled by them."""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.robust cimport ROBUST_WIDTH, RobustStat
from varifold._numeric.memory cimport resize_zeroed

KINDS = {"none": NONE, "standard": STANDARD, "minmax": MINMAX, "robust": ROBUST}


cdef class Scaler:
    """Per-slot running statistics.

    ``standard`` is Welford's mean and deviation, ``minmax`` the range so far, ``robust`` (robust.pxd) mean and
    deviation of values clipped at a running quantile.
    """

    def __cinit__(self, str kind="robust", double clip=3.0):
        self.kind = KINDS[kind]
        self.clip = clip

    def __dealloc__(self):
        free(self.stat)
        free(self.robust)

    @property
    def width(self):
        """Numbers per slot in a file."""
        return ROBUST_WIDTH if self.kind == ROBUST else 3

    cdef char* rows(self) noexcept nogil:
        return <char*> self.robust if self.kind == ROBUST else <char*> self.stat

    cdef Py_ssize_t row_bytes(self) noexcept nogil:
        return 0 if self.kind == NONE else sizeof(RobustStat) if self.kind == ROBUST else sizeof(Stat)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t row = self.row_bytes()
        cdef void** table = <void**> &self.robust if self.kind == ROBUST else <void**> &self.stat
        if self.kind == NONE or capacity <= self.capacity:
            return 0
        if resize_zeroed(table, self.capacity * row, capacity * row) < 0:
            raise MemoryError
        self.capacity = capacity
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        if self.kind != NONE:
            memset(self.rows() + slot * self.row_bytes(), 0, self.row_bytes())

    def restarts(self, Py_ssize_t size):
        """Return slot -> (step, times) where a new unit was detected and the statistics restarted."""
        cdef Py_ssize_t i
        if self.kind != ROBUST:
            return {}
        return {i: (int(self.robust[i].restarted_at), int(self.robust[i].restarts))
                for i in range(size) if self.robust[i].restarts > 0.0}

    def dump(self, Py_ssize_t size):
        """Return the statistics of the first `size` slots, one row each (no rows without scaling)."""
        if self.kind == NONE:
            return np.zeros((0, 3))
        out = np.zeros((size, self.width))
        cdef double[:, ::1] view = out
        memcpy(&view[0, 0], self.rows(), size * self.row_bytes())
        return out

    def check(self, table):
        """Raise ValueError for statistics that no sequence of values can produce."""
        if self.kind == ROBUST and len(table):
            weight, m2, share, spread, varied = (table[:, i] for i in (0, 2, 7, 9, 10))
            if table[:, [0, 2, 3, 7, 9, 10, 13, 14, 15, 16, 17]].min() < 0:
                raise ValueError("the statistics hold numbers below 0")
            if share.max() > 1 or ((varied > 0) & (spread <= 0)).any() or ((m2 > 0) & (weight <= 0)).any():
                raise ValueError("the statistics contradict each other")

    def fill(self, table, Py_ssize_t capacity):
        """Restore what dump() returned."""
        cdef double[:, ::1] view = np.ascontiguousarray(table, dtype=np.float64)
        if view.shape[1] != self.width or view.shape[0] > (0 if self.kind == NONE else capacity):
            raise ValueError("the statistics do not fit the scaler")
        self.grow(capacity)
        if self.kind != NONE and view.shape[0]:
            memcpy(self.rows(), &view[0, 0], view.shape[0] * self.row_bytes())

    def nbytes(self):
        """Return bytes of state."""
        return self.capacity * self.row_bytes()
