"""Warm-up of `AutoRegressor`: its first instances, kept until it is known which of their targets are outliers.

A first target of 1e9 would set the scale of all that follows. So the first FIRST instances are kept. Among these a
target is an outlier if its distance from the median is more than BEYOND times the third quartile of the distances,
unless that holds for more than one in eight. An outlier is moved to MOVED times the quartile. After 8, 16 and 32
instances the targets that were learned are compared with those that should have been; if they differ, the mixture
learns the instances again.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._engine.view cimport View
from varifold._numeric.memory cimport resize
from varifold._numeric.selection cimport select

from varifold._engine.state import checked_array

cdef double BEYOND = 20.0      # distance from the median, in third quartiles, beyond which a target is an outlier
cdef double MOVED = 4.0        # distance to which it is moved


cdef double within_bounds(Bounds b, double y) noexcept nogil:
    """Return the target; if it is an outlier, moved towards the median."""
    if b.unit <= 0.0 or fabs(y - b.centre) <= BEYOND * b.unit:
        return y
    return b.centre + MOVED * b.unit if y > b.centre else b.centre - MOVED * b.unit


cdef class WarmUp:
    """Instances, their targets, the targets learned instead, and their weights."""

    def __dealloc__(self):
        self.end()

    # ---------------------------------------------------------------- memory

    cdef int reserve(self, Py_ssize_t i, Py_ssize_t capacity) noexcept nogil:
        """Reserve memory for this many entries of instance i; -1 without memory."""
        cdef Instance* row = &self.rows[i]
        if capacity <= row.capacity:
            return 0
        if (resize(<void**> &row.slots, 2 * capacity * sizeof(int32_t)) < 0
                or resize(<void**> &row.values, 2 * capacity * sizeof(double)) < 0
                or resize(<void**> &row.is_new, capacity) < 0):
            return -1
        row.capacity = capacity
        return 0

    cdef void end(self) noexcept nogil:
        """End the warm-up and release the instances."""
        cdef int i
        for i in range(FIRST):
            free(self.rows[i].slots)
            free(self.rows[i].values)
            free(self.rows[i].is_new)
            self.rows[i].slots = NULL
            self.rows[i].values = NULL
            self.rows[i].is_new = NULL
            self.rows[i].capacity = 0
        self.count = 0
        self.over = True

    cdef void keep(self, View* v, double y, double learned, double w) noexcept nogil:
        """Keep an instance; one for which no memory was reserved ends the warm-up."""
        cdef Instance* row = &self.rows[self.count]
        cdef View* kept = &row.view
        if v.n > row.capacity or v.columns > row.capacity:
            self.end()
            return
        kept[0] = v[0]
        kept.slot = row.slots
        kept.column = row.slots + row.capacity
        kept.x = row.values
        kept.raw = row.values + row.capacity
        kept.is_new = row.is_new
        memcpy(kept.slot, v.slot, v.n * sizeof(int32_t))
        memcpy(kept.column, v.column, v.columns * sizeof(int32_t))
        memcpy(kept.x, v.x, v.n * sizeof(double))
        memcpy(kept.raw, v.raw, v.n * sizeof(double))
        memcpy(kept.is_new, v.is_new, v.n)
        row.y = y
        row.learned = learned
        row.w = w
        self.count += 1

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove a slot from the instances: another feature may get it."""
        cdef Py_ssize_t i, j, n
        cdef View* v
        for i in range(self.count):
            v = &self.rows[i].view
            n = 0
            for j in range(v.n):
                if v.slot[j] != slot:
                    v.slot[n] = v.slot[j]
                    v.x[n] = v.x[j]
                    v.raw[n] = v.raw[j]
                    v.is_new[n] = v.is_new[j]
                    n += 1
            v.n = n
            n = 0
            for j in range(v.columns):
                if v.column[j] != slot:
                    v.column[n] = v.column[j]
                    n += 1
            v.columns = n

    # ---------------------------------------------------------------- outliers

    cdef Bounds bounds(self) noexcept nogil:
        """Compute from the targets where outliers begin."""
        cdef Bounds b
        cdef double[FIRST] sorted_part
        cdef Py_ssize_t i, n = self.count, outliers = 0
        b.centre = b.unit = 0.0
        if n < FEWEST:
            return b
        for i in range(n):
            sorted_part[i] = self.rows[i].y
        b.centre = select(sorted_part, n, n // 2)
        for i in range(n):
            sorted_part[i] = fabs(self.rows[i].y - b.centre)
        b.unit = select(sorted_part, n, 3 * n // 4 - 1)
        for i in range(n):
            outliers += within_bounds(b, self.rows[i].y) != self.rows[i].y
        if 8 * outliers > n:
            b.unit = 0.0
        return b

    cdef bint differs(self) noexcept nogil:
        """Return whether a comparison is due and some target should have been learned differently."""
        cdef Bounds b
        cdef Py_ssize_t i, n = self.count
        if n == self.checked or not (n == FEWEST or n == 2 * FEWEST or n == FIRST):
            return False
        b = self.bounds()
        for i in range(n):
            if within_bounds(b, self.rows[i].y) != self.rows[i].learned:
                return True
        return False

    # ---------------------------------------------------------------- files

    def dump(self):
        """Return the instances as arrays of a file; none after the warm-up."""
        cdef Py_ssize_t i, j
        cdef View* v
        if self.over:
            return {}
        entries, columns, rows = [], [], []
        for i in range(self.count):
            v = &self.rows[i].view
            entries.extend((i, v.slot[j], v.is_new[j], v.x[j], v.raw[j]) for j in range(v.n))
            columns.extend((i, v.column[j]) for j in range(v.columns))
            rows.append((v.step, v.known, self.rows[i].y, self.rows[i].learned, self.rows[i].w))
        return {
            "warm_up.checked": np.array([self.checked], dtype=np.int64),
            "warm_up.steps": np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2),
            "warm_up.targets": np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 3),
            "warm_up.slots": np.array([entry[:3] for entry in entries], dtype=np.int64).reshape(-1, 3),
            "warm_up.values": np.array([entry[3:] for entry in entries], dtype=np.float64).reshape(-1, 2),
            "warm_up.columns": np.array(columns, dtype=np.int64).reshape(-1, 2),
        }

    def fill(self, dict arrays, Py_ssize_t slots):
        """Restore what dump() returned."""
        cdef Py_ssize_t i
        if "warm_up.steps" not in arrays:
            self.end()
            return
        steps = checked_array(arrays, "warm_up.steps", "i", (None, 2), 0)
        n = len(steps)
        if n > FIRST:
            raise ValueError(f"a warm-up of {n} instances; there are at most {FIRST}")
        targets = checked_array(arrays, "warm_up.targets", "f", (n, 3), -1e150, 1e150)
        entries = checked_array(arrays, "warm_up.slots", "i", (None, 3), 0)
        values = checked_array(arrays, "warm_up.values", "f", (len(entries), 2), -1e150, 1e150)
        columns = checked_array(arrays, "warm_up.columns", "i", (None, 2), 0)
        if not (targets[:, 2] > 0.0).all() or entries[:, 2].max(initial=0) > 1:
            raise ValueError("instances of the warm-up with a weight of 0 or marks other than 0 and 1")
        check_slots(entries[:, :2], n, slots)
        check_slots(columns, n, slots)
        self.checked = int(checked_array(arrays, "warm_up.checked", "i", (1,), 0, n)[0])
        for i in range(n):
            own = entries[:, 0] == i
            self.fill_row(i, entries[own], values[own], columns[columns[:, 0] == i, 1])
            self.rows[i].view.step, self.rows[i].view.known = steps[i]
            self.rows[i].y, self.rows[i].learned, self.rows[i].w = targets[i]
        self.count = n
        self.over = False

    def fill_row(self, Py_ssize_t i, entries, values, columns):
        """Restore the entries of one instance, which were checked."""
        cdef Py_ssize_t j
        cdef Instance* row = &self.rows[i]
        cdef View* v = &row.view
        if self.reserve(i, max(len(entries), len(columns), 1)) < 0:
            raise MemoryError
        v.n = len(entries)
        v.columns = len(columns)
        v.slot = row.slots
        v.column = row.slots + row.capacity
        v.x = row.values
        v.raw = row.values + row.capacity
        v.is_new = row.is_new
        for j in range(v.n):
            v.slot[j], v.is_new[j] = entries[j, 1:]
            v.x[j], v.raw[j] = values[j]
        for j in range(v.columns):
            v.column[j] = columns[j]

    def nbytes(self):
        """Return the bytes of memory in use."""
        cdef int i
        return sum(self.rows[i].capacity * (2 * sizeof(int32_t) + 2 * sizeof(double) + 1) for i in range(FIRST))


def check_slots(pairs, n, slots):
    """Reject (instance, slot) pairs that do not exist or do not ascend."""
    if not len(pairs):
        return
    if pairs[:, 0].max() >= n or pairs[:, 1].max() >= slots:
        raise ValueError("instances of the warm-up with entries that do not exist")
    order = pairs[:, 0] * slots + pairs[:, 1]
    if (order[1:] <= order[:-1]).any():
        raise ValueError("instances of the warm-up whose entries do not ascend")
