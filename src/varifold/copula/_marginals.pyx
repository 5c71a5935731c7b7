"""Windowed marginals: the last values of each feature, both in order of arrival and sorted.

A rank is a binary search and an insertion shifts at most `size` numbers: for the few hundred values of a window this is
faster than a tree. The place of a value is computed as if it had joined its window, so that predicting changes nothing.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset
from scipy.special.cython_special cimport ndtri

from varifold._engine.state cimport State
from varifold._numeric.ascending cimport first_above, first_not_below, replace_ascending

from varifold._engine.state import fixed, per_slot


cdef class Marginals:
    """Keep one window per feature; the owner decides which feature has window j."""

    def __cinit__(self, Py_ssize_t size=200, Py_ssize_t levels=14):
        cdef Py_ssize_t i
        self.size = size
        self.levels = levels
        self.arrays = State()
        self.arrays.scratch(&self.quantile, fixed(2 * size + 3))
        self.arrays.scratch_bytes(<void**> &self.window, sizeof(Window), per_slot())
        self.arrays.scratch(&self.values, per_slot(width=2 * size))   # last: grow() relies on it
        for i in range(2 * size + 3):
            self.quantile[i] = ndtri(<double> i / (2.0 * (size + 1)))

    cdef int grow(self, Py_ssize_t capacity) except -1:
        """Reserve memory for this many windows. On failure the values have not moved, so the windows stay intact."""
        cdef Py_ssize_t j
        if capacity <= self.capacity:
            return 0
        self.arrays.reserve_slots(capacity)
        for j in range(capacity):
            self.window[j].ring = self.values + 2 * j * self.size
            self.window[j].sorted = self.window[j].ring + self.size
        self.capacity = capacity
        return 0

    cdef void clear(self, Py_ssize_t j) noexcept nogil:
        """Empty window j."""
        self.window[j].n = 0
        self.window[j].head = 0
        self.window[j].levels = 0

    cdef void start_at_zero(self, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
        """Fill the window with up to n zeros: the past of an indicator before its level first appeared."""
        cdef Window* w = &self.window[j]
        w.n = <int32_t> (n if n < self.size else self.size)
        w.head = 0
        w.levels = 1 if w.n else 0
        memset(w.ring, 0, w.n * sizeof(double))
        memset(w.sorted, 0, w.n * sizeof(double))

    cdef double normal_quantile(self, Py_ssize_t twice, Py_ssize_t n) noexcept nogil:
        """Return the normal quantile of (twice / 2) / (n + 1)."""
        if n == self.size:
            return self.quantile[twice]
        return ndtri(<double> twice / (2.0 * (n + 1)))

    cdef void place(self, Py_ssize_t j, double x, Place* out) noexcept nogil:
        """Compute the normal score of x in window j as if x had joined it.

        A continuous value gets the normal quantile of its mid-rank over n + 1 (OVFM eq. 6), an ordinal one the
        interval between the quantiles of its neighbours (eq. 7) and the mean of the normal within it.
        """
        cdef Window* w = &self.window[j]
        cdef bint full = w.n == self.size
        cdef Py_ssize_t smaller = first_not_below(w.sorted, w.n, x)
        cdef Py_ssize_t equal = first_above(w.sorted, w.n, smaller, x) - smaller
        cdef Py_ssize_t n = w.n if full else w.n + 1
        cdef Py_ssize_t levels = w.levels + (equal == 0)
        cdef double low_density = 0.0, high_density = 0.0
        equal += 1                       # x itself
        if full:                         # the oldest value leaves for it
            if w.ring[w.head] < x:
                smaller -= 1
            elif w.ring[w.head] == x:
                equal -= 1
        out.interval = levels <= self.levels
        if not out.interval:
            out.z = self.normal_quantile(2 * smaller + equal + 1, n)
            return
        out.low = -INFINITY
        out.high = INFINITY
        if smaller > 0:
            out.low = self.normal_quantile(2 * smaller, n)
            low_density = normal_density(out.low)
        if smaller + equal < n:
            out.high = self.normal_quantile(2 * (smaller + equal), n)
            high_density = normal_density(out.high)
        out.z = (low_density - high_density) / normal_mass(out.low, out.high)

    cdef void commit(self, Py_ssize_t j, double x) noexcept nogil:
        """Add x to the window; drop the oldest value of a full one."""
        cdef Window* w = &self.window[j]
        cdef Py_ssize_t at = first_not_below(w.sorted, w.n, x), removed
        cdef double oldest
        if at == w.n or w.sorted[at] != x:
            w.levels += 1
        if w.n < self.size:
            replace_ascending(w.sorted, w.n, x, False, 0.0)
            w.ring[w.n] = x
            w.n += 1
            return
        oldest = w.ring[w.head]
        removed = first_not_below(w.sorted, w.n, oldest)
        if (removed + 1 == w.n or w.sorted[removed + 1] != oldest) and oldest != x:
            w.levels -= 1
        replace_ascending(w.sorted, w.n, x, True, oldest)
        w.ring[w.head] = x
        w.head = w.head + 1 if w.head + 1 < self.size else 0

    cdef bint ordinal(self, Py_ssize_t j) noexcept nogil:
        """Return whether the window has so few distinct values that each is an interval."""
        return self.window[j].levels <= self.levels

    cdef double value(self, Py_ssize_t j, double z) noexcept nogil:
        """Return the window's value at normal score z: a level of an ordinal feature, else interpolated."""
        cdef Window* w = &self.window[j]
        cdef double at = normal_cdf(z) * (w.n + 1), part
        cdef Py_ssize_t i
        if self.ordinal(j):
            i = <Py_ssize_t> at
            if i == at and i > 0:
                i -= 1
            return w.sorted[i if i < w.n else w.n - 1]
        at -= 1.0
        if at <= 0.0:
            return w.sorted[0]
        i = <Py_ssize_t> at
        if i >= w.n - 1:
            return w.sorted[w.n - 1]
        part = at - i
        return (1.0 - part) * w.sorted[i] + part * w.sorted[i + 1]

    cdef double likeliest(self, Py_ssize_t j, double z, double sd) noexcept nogil:
        """Return the most probable level of a normal score with mean z and deviation sd; the lowest among ties."""
        cdef Window* w = &self.window[j]
        cdef Py_ssize_t at = 0, end
        cdef double low = 0.0, high, best = -1.0, level = 0.0
        while at < w.n:
            end = first_above(w.sorted, w.n, at, w.sorted[at])
            high = 1.0 if end == w.n else normal_cdf((self.normal_quantile(2 * end, w.n) - z) / sd)
            if high - low > best:
                best = high - low
                level = w.sorted[at]
            low = high
            at = end
        return level

    cdef double split(self, Py_ssize_t j, double x) noexcept nogil:
        """Return the normal score that separates the window's values up to x from those above it."""
        cdef Window* w = &self.window[j]
        cdef Py_ssize_t at = first_above(w.sorted, w.n, first_not_below(w.sorted, w.n, x), x)
        if at == 0:
            return -INFINITY
        if at == w.n:
            return INFINITY
        return self.normal_quantile(2 * at, w.n)

    # ---------------------------------------------------------------- looking and keeping

    cdef int check_window(self, Py_ssize_t j) except -1:
        if not 0 <= j < self.capacity:
            raise IndexError(f"there is no window {j}; there are {self.capacity}")
        return 0

    def reserve(self, Py_ssize_t capacity):
        """Reserve memory for windows 0 .. capacity - 1."""
        self.grow(capacity)

    def learn(self, Py_ssize_t j, double x):
        """Add x to window j."""
        self.check_window(j)
        self.commit(j, x)

    def placed(self, Py_ssize_t j, double x):
        """Return (score, low, high) of x as if it had joined window j; low and high are None for a point."""
        cdef Place p
        self.check_window(j)
        self.place(j, x, &p)
        return (p.z, p.low, p.high) if p.interval else (p.z, None, None)

    def inverse(self, Py_ssize_t j, double z):
        """Return the value of window j at normal score z; the window must not be empty."""
        self.check_window(j)
        if self.window[j].n == 0:
            raise ValueError(f"window {j} is empty")
        return self.value(j, z)

    def level_count(self, Py_ssize_t j):
        """Return the number of distinct values in window j."""
        self.check_window(j)
        return self.window[j].levels

    def dump(self, Py_ssize_t count):
        """Return the first `count` windows: their counts and their values, oldest first."""
        if not 0 <= count <= self.capacity:
            raise IndexError(f"there are {self.capacity} windows, not {count}")
        cdef Py_ssize_t j, first
        cdef Window* w
        counts = np.array([self.window[j].n for j in range(count)], dtype=np.int64)
        values = np.zeros(int(counts.sum()))
        cdef double[::1] out = values
        cdef Py_ssize_t at = 0
        for j in range(count):
            w = &self.window[j]
            first = w.n - w.head
            if w.n:
                memcpy(&out[at], w.ring + w.head, first * sizeof(double))
            if w.head:
                memcpy(&out[at + first], w.ring, w.head * sizeof(double))
            at += w.n
        return counts, values

    def fill(self, counts, values):
        """Restore the result of dump()."""
        cdef Py_ssize_t j, i, n
        cdef double[::1] held = np.ascontiguousarray(values, dtype=np.float64)
        cdef Py_ssize_t at = 0
        if counts.size and counts.min() < 0 or counts.sum() != held.shape[0]:
            raise ValueError(f"{held.shape[0]} values for windows of {counts.sum()}")
        self.grow(len(counts))
        for j in range(len(counts)):
            n = counts[j]
            if n > self.size:
                raise ValueError("a window holds more values than this one can")
            self.clear(j)
            for i in range(n):
                self.commit(j, held[at + i])
            at += n

    def nbytes(self):
        """Return the number of bytes held."""
        return self.arrays.nbytes()
