"""Best split of each column over a window of instances, searched at most once per instance."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from varifold._engine.state cimport State
from varifold.forest._window cimport Row, Window, place

from varifold._engine.state import fixed, per_class, per_slot, per_slot_and_class

cdef double TIE = 1e-9   # smaller differences of gains count as ties, so that rounding decides nothing


cdef int by_value(const void* a, const void* b) noexcept nogil:
    cdef double p = (<const Point*> a).value, q = (<const Point*> b).value
    return -1 if p < q else (1 if p > q else 0)


cdef class SplitSearch:
    """Search splits of the window's columns; a key is a column's numbers or its strings, as in `Row`."""

    def __cinit__(self, Window window):
        self.window = window
        self.arrays = State()
        self.arrays.scratch(&self.held, per_slot(width=2))
        self.arrays.scratch(&self.alive, per_slot(width=2))
        self.arrays.scratch_bytes(<void**> &self.best, 2 * sizeof(Split), per_slot())
        self.arrays.scratch(&self.sides, per_slot_and_class(width=4))
        self.arrays.scratch(&self.left, per_class())
        self.arrays.scratch(&self.right, per_class())
        self.arrays.scratch_bytes(<void**> &self.point, sizeof(Point), fixed(window.most))

    cdef int reserve(self, Py_ssize_t slots) except -1:
        self.arrays.reserve_slots(slots)
        return 0

    cdef int reserve_classes(self, Py_ssize_t classes) except -1:
        self.arrays.reserve_classes(classes)
        return 0

    # ---------------------------------------------------------------- the window

    cdef void count_row(self, Row* r, int32_t by) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(r.n):
            self.held[r.key[i]] += by

    cdef void put(self, Row* r) noexcept nogil:
        """Add a row to the window, which reserved memory for it."""
        if self.window.taken >= self.window.most:
            self.count_row(&self.window.row[self.window.taken % self.window.most], -1)
        self.window.put(r)
        self.count_row(r, 1)

    def recount(self):
        """Count the rows of a window that was just restored."""
        cdef Py_ssize_t i
        for i in range(min(self.window.taken, <int64_t> self.window.most)):
            self.count_row(&self.window.row[i], 1)

    cdef Py_ssize_t list_alive(self, Py_ssize_t slots) noexcept nogil:
        """List the keys that occur in rows, ascending, in `alive`; return their number."""
        cdef Py_ssize_t n = 0
        cdef int32_t key
        for key in range(2, <int32_t> (2 * slots)):
            if self.held[key] > 0:
                self.alive[n] = key
                n += 1
        return n

    # ---------------------------------------------------------------- searching

    cdef double* side_of(self, int32_t key, int c) noexcept nogil:
        """Return the shares of class c on the two sides of a key's best split."""
        return self.sides + (<Py_ssize_t> (key >> 1) * self.arrays.classes + c) * 4 + 2 * (key & 1)

    cdef Split* search(self, int32_t key, int classes) noexcept nogil:
        """Return the best split of a key. If all rows go left, the right side has the same shares."""
        cdef Split* found = &self.best[key]
        cdef Py_ssize_t n, at
        cdef double middle
        if found.found == self.window.taken:
            return found
        found.found = self.window.taken
        n = self.gather(key)
        qsort(self.point, n, sizeof(Point), by_value)
        at = self.best_cut(key, n, classes, &found.gain)
        found.value = self.point[at].value
        if not key & 1 and at + 1 < n:
            middle = 0.5 * (found.value + self.point[at + 1].value)
            if middle < self.point[at + 1].value:    # two neighbouring doubles have no midpoint
                found.value = middle
        self.share(key, n, at, classes)
        return found

    cdef Py_ssize_t gather(self, int32_t key) noexcept nogil:
        """Collect the values under a key in `point`; return their number."""
        cdef Py_ssize_t t, i, n = 0, rows = <Py_ssize_t> min(self.window.taken, <int64_t> self.window.most)
        cdef Row* r
        for t in range(rows):
            r = &self.window.row[t]
            i = place(r, key)
            if i >= 0:
                self.point[n].value = r.value[i]
                self.point[n].w = r.w
                self.point[n].y = r.y
                n += 1
        return n

    cdef Py_ssize_t best_cut(self, int32_t key, Py_ssize_t n, int classes, double* gain) noexcept nogil:
        """Return the last sorted point on the left (of a level: the last with it); n - 1 if no split helps.

        With weights l by class on the left and r on the right, and L, R their sums, impurity decreases by
        sum of l^2 / L + sum of r^2 / R - sum of (l + r)^2 / (L + R).
        """
        cdef Py_ssize_t i, at = n - 1
        cdef int c
        cdef double w, own, total = 0.0, squares = 0.0, left = 0.0, left2 = 0.0, right2, rest
        memset(self.left, 0, classes * sizeof(double))
        memset(self.right, 0, classes * sizeof(double))
        for i in range(n):
            self.right[self.point[i].y] += self.point[i].w
            total += self.point[i].w
        for c in range(classes):
            squares += self.right[c] * self.right[c]
        right2 = squares
        gain[0] = 0.0
        for i in range(n):
            if key & 1 and i and self.point[i].value != self.point[i - 1].value:
                for c in range(classes):    # move the previous level back to the right
                    self.right[c] += self.left[c]
                    self.left[c] = 0.0
                left = left2 = 0.0
                right2 = squares
            w = self.point[i].w
            c = self.point[i].y
            left2 += w * (2.0 * self.left[c] + w)
            right2 -= w * (2.0 * self.right[c] - w)
            self.left[c] += w
            self.right[c] -= w
            left += w
            if i + 1 < n and self.point[i + 1].value == self.point[i].value:
                continue
            if total <= left or (key & 1 and self.point[i].value == 0.0):
                continue    # empty right side, or an evicted level
            rest = total - left
            # rounding of very unequal weights can exceed the total
            own = left2 / left + min(max(right2, 0.0), rest * rest) / rest - squares / total
            if own > gain[0] + TIE * total:
                gain[0] = own
                at = i
        return at

    cdef void share(self, int32_t key, Py_ssize_t n, Py_ssize_t at, int classes) noexcept nogil:
        """Compute the shares of the classes on the two sides of the split after point `at`."""
        cdef Py_ssize_t i
        cdef int c
        cdef double left = 0.0, right = 0.0
        memset(self.left, 0, classes * sizeof(double))
        memset(self.right, 0, classes * sizeof(double))
        for i in range(n):
            if i <= at and (not key & 1 or self.point[i].value == self.point[at].value):
                self.left[self.point[i].y] += self.point[i].w
                left += self.point[i].w
            else:
                self.right[self.point[i].y] += self.point[i].w
                right += self.point[i].w
        for c in range(classes):
            self.side_of(key, c)[0] = self.left[c] / left
            self.side_of(key, c)[1] = self.right[c] / right if right > 0.0 else self.left[c] / left

    def nbytes(self):
        """Return the number of bytes held."""
        return self.arrays.nbytes()
