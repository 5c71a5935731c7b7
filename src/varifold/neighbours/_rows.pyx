"""The last instances of a stream as (slot, value) pairs."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._numeric.ascending cimport place_among
from varifold._numeric.memory cimport allocate, resize

from varifold._engine.state import checked_array


cdef class Rows:
    """A ring of rows; of one with more than `widest` entries the first slots are kept."""

    def __cinit__(self, Py_ssize_t window, Py_ssize_t widest=512):
        self.row = <KeptRow*> allocate(window * sizeof(KeptRow))
        if self.row == NULL:
            raise MemoryError
        self.window = window
        self.widest = widest

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.window if self.row != NULL else 0):
            free(self.row[i].slot)
            free(self.row[i].x)
        free(self.row)

    cdef int reserve(self, KeptRow* r, Py_ssize_t n) except -1 nogil:
        """Reserve n entries for a row."""
        if n <= r.capacity:
            return 0
        if resize(<void**> &r.slot, n * sizeof(int32_t)) < 0 or resize(<void**> &r.x, n * sizeof(double)) < 0:
            raise MemoryError
        r.capacity = n
        return 0

    cdef int reserve_next(self, Py_ssize_t n) except -1 nogil:
        """Reserve memory to add a row of n entries."""
        return self.reserve(&self.row[self.taken % self.window], min(n, self.widest))

    cdef Py_ssize_t held(self) noexcept nogil:
        """Return the number of rows kept."""
        return min(self.taken, self.window)

    cdef KeptRow* add(self, const int32_t* slot, const double* x, Py_ssize_t n) noexcept nogil:
        """Replace the oldest row by n entries, for which memory was reserved; return the row."""
        cdef KeptRow* r = &self.row[self.taken % self.window]
        r.n = min(n, self.widest)
        if r.n:    # an empty row may have no memory
            memcpy(r.slot, slot, r.n * sizeof(int32_t))
            memcpy(r.x, x, r.n * sizeof(double))
        self.taken += 1
        return r

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a slot from every row."""
        cdef Py_ssize_t i, j, n
        cdef KeptRow* r
        for i in range(self.window):
            r = &self.row[i]
            n = 0
            for j in range(r.n):
                if r.slot[j] != slot:
                    r.slot[n] = r.slot[j]
                    r.x[n] = r.x[j]
                    n += 1
            r.n = n

    cdef const double* value(self, Py_ssize_t place, int32_t slot) noexcept nogil:
        """Return a row's value of a slot, or NULL."""
        cdef KeptRow* r = &self.row[place]
        cdef Py_ssize_t at = place_among(r.slot, r.n, slot)
        return &r.x[at] if at < r.n and r.slot[at] == slot else NULL

    # ---------------------------------------------------------------- files

    def dump(self, str prefix=""):
        """Return the rows as arrays by name, which begins with `prefix`."""
        cdef Py_ssize_t i, n, at = 0, held = self.held()
        cdef int32_t[::1] slots
        cdef double[::1] x
        ends = np.cumsum([0, *[self.row[i].n for i in range(held)]], dtype=np.int64)
        slots = np.zeros(ends[held], dtype=np.int32)
        x = np.zeros(ends[held])
        for i in range(held):
            n = self.row[i].n
            if n:
                memcpy(&slots[at], self.row[i].slot, n * sizeof(int32_t))
                memcpy(&x[at], self.row[i].x, n * sizeof(double))
            at += n
        return {prefix + "ends": ends, prefix + "slots": np.asarray(slots), prefix + "x": np.asarray(x),
                prefix + "taken": np.array([self.taken], dtype=np.int64)}

    def fill(self, dict arrays, Py_ssize_t capacity, str prefix=""):
        """Restore what dump() returned, for slots below `capacity`."""
        cdef Py_ssize_t i, lo, n, held
        cdef const int64_t[::1] ends
        cdef const int32_t[::1] slots
        cdef const double[::1] x
        ends = checked_array(arrays, prefix + "ends", "i", (None,), 0, len(arrays[prefix + "x"])).astype(np.int64)
        held = len(ends) - 1
        taken = int(checked_array(arrays, prefix + "taken", "i", (1,), 0, 1 << 53)[0])
        if held != min(taken, self.window) or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise ValueError("the rows kept do not fit the window")
        x = checked_array(arrays, prefix + "x", "f", (int(ends[held]),))
        slots = checked_array(arrays, prefix + "slots", "i", (int(ends[held]),), 0, capacity - 1).astype(np.int32)
        self.taken = taken
        for i in range(held):
            lo = ends[i]
            n = ends[i + 1] - lo
            if n > self.widest or (np.diff(slots[lo:lo + n]) <= 0).any():
                raise ValueError(f"row {i} is too wide, or its slots are not in order")
            self.reserve(&self.row[i], n)
            if n:
                memcpy(self.row[i].slot, &slots[lo], n * sizeof(int32_t))
                memcpy(self.row[i].x, &x[lo], n * sizeof(double))
            self.row[i].n = n

    def nbytes(self):
        """Return bytes of state."""
        cdef Py_ssize_t i
        return self.window * sizeof(KeptRow) + sum(
            self.row[i].capacity * (sizeof(int32_t) + sizeof(double)) for i in range(self.window))
