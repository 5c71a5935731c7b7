"""A ring of the most recent labelled instances, by column.

A small window also keeps a table of their numbers by column and row, so that a number is found without a search.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from varifold._engine.names.table cimport INDICATOR, NameTable
from varifold._engine.view cimport View
from varifold._numeric.memory cimport allocate, resize, resize_zeroed

from varifold._engine.state import checked_array

cdef Py_ssize_t MOST_CELLS = 1 << 18    # of the table
cdef double NONE = 1e999 - 1e999    # NaN


cdef void sort_entries(Row* r) noexcept nogil:
    """Sort the entries of a row by key, in place: Shell sort, because entries in slot order are nearly sorted."""
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
    """Convert the view to entries by column."""
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
    """A ring of rows; reserve() allocates the memory before put()."""

    def __cinit__(self, Py_ssize_t most, Py_ssize_t most_numbers=0, bint numeric=False, double narrow=0.0):
        self.most = most
        self.numeric = numeric
        self.most_numbers = most_numbers
        self.narrow = narrow

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.capacity):
            free(self.row[i].key)
            free(self.row[i].value)
        free(self.row)
        free(self.order)
        free(self.spare)
        free(self.table)

    cdef int reserve_rows(self, Py_ssize_t rows) except -1 nogil:
        """Reserve memory for this many rows, and half as many again while the ring grows."""
        cdef Py_ssize_t capacity = min(self.most, max(rows, self.capacity + self.capacity // 2))
        if rows <= self.capacity:
            return 0
        if (resize(<void**> &self.order, capacity * sizeof(int32_t)) < 0
                or resize(<void**> &self.spare, capacity * sizeof(int32_t)) < 0
                or resize_zeroed(<void**> &self.row, self.capacity * sizeof(Row), capacity * sizeof(Row)) < 0):
            raise MemoryError
        self.fit_table(self.tabled, capacity)
        self.capacity = capacity
        return 0

    cdef int fit_table(self, Py_ssize_t slots, Py_ssize_t capacity) except -1 nogil:
        """Reserve table memory for this many slots and rows; drop the table if it would become too large."""
        cdef Py_ssize_t i, k, held = min(self.capacity, capacity)
        cdef double* table = NULL
        if slots == 0 or (self.capacity > 0 and self.tabled == 0):
            return 0    # disabled
        if slots <= self.tabled and capacity == self.capacity:
            return 0    # large enough
        if slots * capacity > MOST_CELLS:
            slots = 0
        elif capacity:
            table = <double*> allocate(slots * capacity * sizeof(double))
            if table == NULL:
                raise MemoryError
            for i in range(slots):
                for k in range(held if i < self.tabled else 0):
                    table[i * capacity + k] = self.table[i * self.capacity + k]
                for k in range(held if i < self.tabled else 0, capacity):
                    table[i * capacity + k] = NONE
        free(self.table)
        self.table = table
        self.tabled = slots
        return 0

    cdef void enter(self, Py_ssize_t t, bint take_out) noexcept nogil:
        """Write the numbers of a row into the table by column, or remove them."""
        cdef Row* r = &self.row[t]
        cdef Py_ssize_t i
        for i in range(r.n if self.tabled else 0):
            if not r.key[i] & 1:
                self.table[(r.key[i] >> 1) * self.capacity + t] = NONE if take_out else r.value[i]

    cdef int reserve_entries(self, Row* r, Py_ssize_t entries) except -1 nogil:
        """Reserve memory for this many entries in a row and keep its content."""
        if entries <= r.capacity:
            return 0
        if (resize(<void**> &r.key, entries * sizeof(int32_t)) < 0
                or resize(<void**> &r.value, entries * sizeof(double)) < 0):
            raise MemoryError
        r.capacity = entries
        return 0

    cdef int reserve(self, Py_ssize_t entries) except -1 nogil:
        """Reserve memory for the next row, with this many entries."""
        cdef Py_ssize_t at = self.taken % self.most
        self.reserve_rows(at + 1)
        return self.reserve_entries(&self.row[at], entries)

    cdef void put(self, Row* r) noexcept nogil:
        """Add a row, in place of the oldest if the ring is full."""
        cdef Py_ssize_t t = self.taken % self.most
        cdef Row* into = &self.row[t]
        self.enter(t, True)
        if r.n:  # an empty row may have no memory
            memcpy(into.key, r.key, r.n * sizeof(int32_t))
            memcpy(into.value, r.value, r.n * sizeof(double))
        self.numbers += r.n - (into.n if self.taken >= self.most else 0)
        into.n = r.n
        into.y = r.y
        into.target = r.target
        into.w = r.w
        self.enter(t, False)
        self.taken += 1
        self.close_ring()

    cdef bint holds_enough(self) noexcept nogil:
        """Return whether the ring holds its maximum of numbers, in rows of more than `narrow` numbers on average."""
        return self.numbers >= self.most_numbers and self.numbers > self.narrow * self.taken

    cdef void close_ring(self) noexcept nogil:
        """Bound the ring to the rows that it has if they hold its maximum of numbers: a new row replaces the oldest."""
        if self.most_numbers and FEWEST_ROWS <= self.taken < self.most and self.holds_enough():
            self.most = self.taken
            self.closed = True

    cdef void forget(self, int32_t key, double level) noexcept nogil:
        """Remove the entries with this key from all rows; with a level, remove only the level."""
        cdef Py_ssize_t t, i, held = min(self.taken, <int64_t> self.most)
        cdef Row* r
        for t in range(self.capacity if not key & 1 and (key >> 1) < self.tabled else 0):
            self.table[(key >> 1) * self.capacity + t] = NONE
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

    cdef void forget_marked(self, const uint8_t* marked) noexcept nogil:
        """Remove the entries with marked keys from all rows, as forget() does for one key."""
        cdef Py_ssize_t t, i, n, held = min(self.taken, <int64_t> self.most)
        cdef Row* r
        for t in range(held):
            r = &self.row[t]
            n = 0
            for i in range(r.n):
                if not marked[r.key[i]]:
                    r.key[n], r.value[n] = r.key[i], r.value[i]
                    n += 1
                elif self.tabled and not r.key[i] & 1:
                    self.table[(r.key[i] >> 1) * self.capacity + t] = NONE
            self.numbers -= r.n - n
            r.n = n

    def dump(self):
        """Return the rows in ring order."""
        cdef Py_ssize_t i, held = min(self.taken, <int64_t> self.most)
        cdef int64_t[::1] ends = np.zeros(held + 1, dtype=np.int64)
        for i in range(held):
            ends[i + 1] = ends[i] + self.row[i].n
        cdef int32_t[::1] keys = np.zeros(ends[held], dtype=np.int32)
        cdef double[::1] values = np.zeros(ends[held])
        cdef double[::1] w = np.zeros(held)
        for i in range(held):
            w[i] = self.row[i].w
            if self.row[i].n:
                memcpy(&keys[ends[i]], self.row[i].key, self.row[i].n * sizeof(int32_t))
                memcpy(&values[ends[i]], self.row[i].value, self.row[i].n * sizeof(double))
        # the content does not show whether a ring that stopped growing has lost numbers since
        stopped = self.closed and self.taken == self.most and not self.holds_enough()
        return {"window.ends": np.asarray(ends), "window.keys": np.asarray(keys), "window.values": np.asarray(values),
                "window.y": self.targets(held), "window.w": np.asarray(w),
                "window.taken": np.array([self.taken], dtype=np.int64),
                **({"window.most": np.array([self.most], dtype=np.int64)} if stopped else {})}

    def targets(self, Py_ssize_t held):
        """Return the labels or targets of the rows."""
        cdef Py_ssize_t i
        if self.numeric:
            return np.array([self.row[i].target for i in range(held)], dtype=np.float64)
        return np.array([self.row[i].y for i in range(held)], dtype=np.int32)

    def fill(self, dict arrays, Py_ssize_t capacity, Py_ssize_t classes):
        """Restore the checked result of dump()."""
        kind, low, high = ("f", -1e150, 1e150) if self.numeric else ("i", 0, classes - 1)
        held = len(checked_array(arrays, "window.y", kind, (None,), low, high))
        ends = checked_array(arrays, "window.ends", "i", (held + 1,), 0, len(arrays["window.keys"])).astype(np.int64)
        keys = checked_array(arrays, "window.keys", "i", (int(ends[held]),), 2, 2 * capacity - 1).astype(np.int32)
        values = checked_array(arrays, "window.values", "f", keys.shape)
        taken = int(checked_array(arrays, "window.taken", "i", (1,), 0, 1 << 53)[0])
        levels = values[keys % 2 == 1]
        stopped = "window.most" in arrays and checked_array(arrays, "window.most", "i", (1,), held, held)[0] == taken
        if self.most_numbers and FEWEST_ROWS <= held and (stopped or held < min(taken, self.most)):
            self.most = held    # the ring stopped growing
            self.closed = True
        if held != min(taken, self.most) or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise ValueError("the instances kept do not fit the window")
        if self.numeric and held and min(arrays["window.w"]) <= 0.0:
            raise ValueError("window.w holds weights of 0")
        if levels.size and (levels.min() < 0 or levels.max() >= capacity):
            raise ValueError("window.values holds levels that are no slots")
        falls = np.flatnonzero(np.diff(keys) <= 0) + 1
        if not np.isin(falls, ends).all():
            raise ValueError("the entries of an instance are not in order")
        self.taken = taken
        self.take_rows(ends, keys, values, arrays["window.y"].astype(np.float64),
                       checked_array(arrays, "window.w", "f", (held,), 0))
        self.close_ring()

    cdef int take_rows(self, const int64_t[::1] ends, const int32_t[::1] keys, const double[::1] values,
                       const double[::1] y, const double[::1] w) except -1:
        """Restore rows that were checked."""
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
            if self.numeric:
                r.target = y[i]
            else:
                r.y = <int> y[i]
            r.w = w[i]
            self.numbers += n
            self.enter(i, False)
        return 0

    def nbytes(self):
        """Return the number of bytes held."""
        cdef Py_ssize_t i
        return (self.capacity * (sizeof(Row) + 2 * sizeof(int32_t) + self.tabled * sizeof(double))
                + sum(self.row[i].capacity * (sizeof(int32_t) + sizeof(double)) for i in range(self.capacity)))
