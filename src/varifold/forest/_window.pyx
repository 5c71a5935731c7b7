"""The last labelled instances, by column, in a ring."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from varifold._engine.names cimport INDICATOR, NameTable
from varifold._engine.view cimport View
from varifold._numeric.memory cimport resize, resize_zeroed

from varifold._engine.state import checked_array


cdef void sort_entries(Row* r) noexcept nogil:
    """Shell sort by key; entries that come in order of slots are nearly sorted."""
    cdef Py_ssize_t gap = 1, i, j
    cdef int32_t key
    cdef double value
    while gap < r.n // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, r.n):
            key = r.key[i]
            value = r.value[i]
            j = i
            while j >= gap and r.key[j - gap] > key:
                r.key[j] = r.key[j - gap]
                r.value[j] = r.value[j - gap]
                j -= gap
            r.key[j] = key
            r.value[j] = value
        gap //= 3


cdef void read_view(View* v, NameTable names, Row* into) noexcept nogil:
    """The view as entries by column."""
    cdef Py_ssize_t i, n = 0
    cdef int32_t slot
    cdef bint levels = False
    for i in range(v.n):
        slot = v.slot[i]
        if slot == 0:
            continue
        if names.kind[slot] & INDICATOR:
            levels = True
            into.key[n] = 2 * names.column[slot] + 1
            into.value[n] = slot
        else:
            into.key[n] = 2 * slot
            into.value[n] = v.raw[i]
        n += 1
    into.n = n
    if levels:
        sort_entries(into)


cdef class Window:
    """A ring of rows; memory is taken by reserve() before put()."""

    def __cinit__(self, Py_ssize_t most, Py_ssize_t most_numbers=0, double narrow=0.0):
        self.most = most
        self.most_numbers = most_numbers
        self.narrow = narrow

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.room):
            free(self.row[i].key)
            free(self.row[i].value)
        free(self.row)
        free(self.order)
        free(self.spare)

    cdef int reserve_rows(self, Py_ssize_t rows) except -1 nogil:
        """Room for this many rows, half as many again while the ring grows."""
        cdef Py_ssize_t room = min(self.most, max(rows, self.room + self.room // 2))
        if rows <= self.room:
            return 0
        if (resize(<void**> &self.order, room * sizeof(int32_t)) < 0
                or resize(<void**> &self.spare, room * sizeof(int32_t)) < 0
                or resize_zeroed(<void**> &self.row, self.room * sizeof(Row), room * sizeof(Row)) < 0):
            raise MemoryError
        self.room = room
        return 0

    cdef int reserve_entries(self, Row* r, Py_ssize_t entries) except -1 nogil:
        """Room for this many entries in a row, which keeps what it holds."""
        if entries <= r.room:
            return 0
        if (resize(<void**> &r.key, entries * sizeof(int32_t)) < 0
                or resize(<void**> &r.value, entries * sizeof(double)) < 0):
            raise MemoryError
        r.room = entries
        return 0

    cdef int reserve(self, Py_ssize_t entries) except -1 nogil:
        """Room for a row of this many entries to be put in next."""
        cdef Py_ssize_t at = self.taken % self.most
        self.reserve_rows(at + 1)
        return self.reserve_entries(&self.row[at], entries)

    cdef void put(self, Row* r) noexcept nogil:
        """Put a row in, in place of the oldest when the ring is full."""
        cdef Row* into = &self.row[self.taken % self.most]
        memcpy(into.key, r.key, r.n * sizeof(int32_t))
        memcpy(into.value, r.value, r.n * sizeof(double))
        self.numbers += r.n - (into.n if self.taken >= self.most else 0)
        into.n = r.n
        into.y = r.y
        into.w = r.w
        self.taken += 1
        self.close_ring()

    cdef bint holds_enough(self) noexcept nogil:
        """Whether there are as many numbers as there may be, in rows that are not narrow."""
        return self.numbers >= self.most_numbers and self.numbers > self.narrow * self.taken

    cdef void close_ring(self) noexcept nogil:
        """Let the ring grow no more if it holds as many numbers as it may."""
        if self.most_numbers and FEWEST_ROWS <= self.taken < self.most and self.holds_enough():
            self.most = self.taken
            self.closed = True

    cdef void forget(self, int32_t key, double level) noexcept nogil:
        """Take the entries with this key out of all rows; with a level, those that hold it lose only the level."""
        cdef Py_ssize_t t, i, held = min(self.taken, <int64_t> self.most)
        cdef Row* r
        for t in range(held):
            r = &self.row[t]
            i = place(r, key)
            if i < 0:
                continue
            if level:
                r.value[i] = 0.0 if r.value[i] == level else r.value[i]
                continue
            r.n -= 1
            self.numbers -= 1
            memmove(r.key + i, r.key + i + 1, (r.n - i) * sizeof(int32_t))
            memmove(r.value + i, r.value + i + 1, (r.n - i) * sizeof(double))

    def dump(self):
        """The rows held, in the order of the ring."""
        cdef Py_ssize_t i, held = min(self.taken, <int64_t> self.most)
        cdef int64_t[::1] ends = np.zeros(held + 1, dtype=np.int64)
        for i in range(held):
            ends[i + 1] = ends[i] + self.row[i].n
        cdef int32_t[::1] keys = np.zeros(ends[held], dtype=np.int32)
        cdef double[::1] values = np.zeros(ends[held])
        cdef int32_t[::1] y = np.zeros(held, dtype=np.int32)
        cdef double[::1] w = np.zeros(held)
        for i in range(held):
            y[i] = self.row[i].y
            w[i] = self.row[i].w
            if self.row[i].n:
                memcpy(&keys[ends[i]], self.row[i].key, self.row[i].n * sizeof(int32_t))
                memcpy(&values[ends[i]], self.row[i].value, self.row[i].n * sizeof(double))
        # a ring that has just stopped growing, and lost numbers since, is not known by what it holds
        stopped = self.closed and self.taken == self.most and not self.holds_enough()
        return {"window.ends": np.asarray(ends), "window.keys": np.asarray(keys), "window.values": np.asarray(values),
                "window.y": np.asarray(y), "window.w": np.asarray(w),
                "window.taken": np.array([self.taken], dtype=np.int64),
                **({"window.most": np.array([self.most], dtype=np.int64)} if stopped else {})}

    def fill(self, dict arrays, Py_ssize_t capacity, Py_ssize_t classes):
        """Take what dump() gave, checked."""
        held = len(checked_array(arrays, "window.y", "i", (None,), 0, classes - 1))
        ends = checked_array(arrays, "window.ends", "i", (held + 1,), 0, len(arrays["window.keys"])).astype(np.int64)
        keys = checked_array(arrays, "window.keys", "i", (int(ends[held]),), 2, 2 * capacity - 1).astype(np.int32)
        values = checked_array(arrays, "window.values", "f", keys.shape)
        taken = int(checked_array(arrays, "window.taken", "i", (1,), 0)[0])
        levels = values[keys % 2 == 1]
        stopped = "window.most" in arrays and checked_array(arrays, "window.most", "i", (1,), held, held)[0] == taken
        if self.most_numbers and FEWEST_ROWS <= held and (stopped or held < min(taken, self.most)):
            self.most = held    # the ring stopped growing
            self.closed = True
        if held != min(taken, self.most) or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise ValueError("the instances kept do not fit the window")
        if levels.size and (levels.min() < 0 or levels.max() >= capacity):
            raise ValueError("window.values holds levels that are no slots")
        falls = np.flatnonzero(np.diff(keys) <= 0) + 1
        if not np.isin(falls, ends).all():
            raise ValueError("the entries of an instance are not in order")
        self.taken = taken
        self.take_rows(ends, keys, values, arrays["window.y"].astype(np.int64),
                       checked_array(arrays, "window.w", "f", (held,), 0))
        self.close_ring()

    cdef int take_rows(self, const int64_t[::1] ends, const int32_t[::1] keys, const double[::1] values,
                       const int64_t[::1] y, const double[::1] w) except -1:
        """Take rows that were checked."""
        cdef Py_ssize_t i, n, held = y.shape[0]
        cdef Row* r
        self.reserve_rows(held)
        for i in range(held):
            r = &self.row[i]
            n = ends[i + 1] - ends[i]
            self.reserve_entries(r, n)
            if n:
                memcpy(r.key, &keys[ends[i]], n * sizeof(int32_t))
                memcpy(r.value, &values[ends[i]], n * sizeof(double))
            r.n = n
            r.y = <int> y[i]
            r.w = w[i]
            self.numbers += n
        return 0

    def nbytes(self):
        """Bytes held."""
        cdef Py_ssize_t i
        return (self.room * (sizeof(Row) + 2 * sizeof(int32_t))
                + sum(self.row[i].room * (sizeof(int32_t) + sizeof(double)) for i in range(self.room)))
