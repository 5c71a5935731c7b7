"""Merging t-digest: a small sketch of a distribution, exact on the values that repeat.

Centroids follow Dunning and Ertl's k1 scale. Two things differ. Nothing is merged before there are more than
``compression + BUFFER`` distinct values, and a centroid all of whose values are equal stays a point: the distribution
function jumps there instead of sloping, so that counts, codes and 0/1 features are described exactly.
"""

import numpy as np

from libc.math cimport cos, fabs, isfinite, pi, sin, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._numeric.memory cimport resize

from varifold.errors import DataError, ParameterError


cdef bint digest_reserve(Digest* d, Py_ssize_t capacity) noexcept nogil:
    """Reserve memory for this many points. If memory is out, return False and change nothing."""
    if capacity <= d.capacity:
        return True
    if resize(<void**> &d.point, capacity * sizeof(Point)) < 0:
        return False
    d.capacity = <int32_t> capacity
    return True


cdef bint reserve_value(Digest* d) noexcept nogil:
    """Reserve memory for one more value. If memory is out, return False and change nothing."""
    return not digest_is_full(d) or digest_reserve(d, 2 * d.capacity if d.capacity else FIRST_CAPACITY)


cdef void digest_clear(Digest* d) noexcept nogil:
    """Empty the digest and free its memory."""
    free(d.point)
    memset(d, 0, sizeof(Digest))


cdef void sort_points(Point* p, int32_t n) noexcept nogil:
    """Sort by value with insertion sort, stable."""
    cdef int32_t i, j
    cdef Point moved
    for i in range(1, n):
        moved = p[i]
        j = i - 1
        while j >= 0 and p[j].at > moved.at:
            p[j + 1] = p[j]
            j -= 1
        p[j + 1] = moved


cdef void join_equals(Digest* d) noexcept nogil:
    """Combine points of equal value."""
    cdef int32_t i, k = 0
    cdef Point* p = d.point
    cdef double mass
    for i in range(1, d.n):
        if p[i].at == p[k].at:
            mass = fabs(p[k].mass) + fabs(p[i].mass)
            p[k].mass = mass if p[k].mass > 0.0 and p[i].mass > 0.0 else -mass
        else:
            k += 1
            p[k] = p[i]
    if d.n:
        d.n = k + 1


cdef inline double reach(double before, double total, double along, double across) noexcept nogil:
    """Return the largest weight at which a centroid that starts after `before` may end: one unit of k1 further on.

    That is total / 2 (sin(asin(q) + s) + 1) with q = 2 before / total - 1, s = 2 pi / compression, along = cos s,
    across = sin s.
    """
    cdef double q = 2.0 * before / total - 1.0
    return total if q >= along else total * 0.5 * (q * along + sqrt(1.0 - q * q) * across + 1.0)


cdef void compress(Digest* d, double compression) noexcept nogil:
    """Merge neighbours from the left as far as the scale function allows."""
    cdef int32_t i, k = 0
    cdef Point* p = d.point
    cdef double before = 0.0, end, mass, more
    cdef double along = cos(2.0 * pi / compression), across = sin(2.0 * pi / compression)
    end = reach(0.0, d.total, along, across)
    for i in range(1, d.n):
        mass = fabs(p[k].mass)
        more = fabs(p[i].mass)
        if before + mass + more <= end:
            p[k].at += (p[i].at - p[k].at) * (more / (mass + more))
            p[k].mass = -(mass + more)
        else:
            before += mass
            end = reach(before, d.total, along, across)
            k += 1
            p[k] = p[i]
    d.n = k + 1


cdef void absorb_points(Digest* d, Point* sorted, int32_t m, double compression) noexcept nogil:
    """Merge m ascending points (not those of d itself) into the centroids; d has capacity for all."""
    cdef int32_t i = d.n - 1, j = m - 1, k = d.n + m - 1
    cdef Point* p = d.point
    while j >= 0:
        if i >= 0 and p[i].at > sorted[j].at:
            p[k] = p[i]
            i -= 1
        else:
            p[k] = sorted[j]
            j -= 1
        k -= 1
    d.n += m
    join_equals(d)
    if d.n > compression + BUFFER:
        compress(d, compression)


cdef void digest_flush(Digest* d, double compression) noexcept nogil:
    """Merge the buffered values."""
    cdef Point waiting[BUFFER]
    cdef int32_t m = d.held
    if m == 0:
        return
    memcpy(waiting, d.point + d.n, m * sizeof(Point))
    sort_points(waiting, m)
    d.held = 0
    absorb_points(d, waiting, m, compression)


cdef bint digest_merge(Digest* d, Digest* other, double compression) noexcept nogil:
    """Add the content of another digest, merging the buffers of both first. Return False if memory is out."""
    if other.total == 0.0:
        return True
    digest_flush(d, compression)
    digest_flush(other, compression)
    if not digest_reserve(d, d.n + other.n):
        return False
    if d.total == 0.0 or other.lo < d.lo:
        d.lo = other.lo
    if d.total == 0.0 or other.hi > d.hi:
        d.hi = other.hi
    d.total += other.total
    absorb_points(d, other.point, other.n, compression)
    return True


cdef void digest_sums(Digest* d, double* sums) noexcept nogil:
    """Compute sums[i], the weight of the centroids before i, for i = 0 .. n; the digest is flushed."""
    cdef int32_t i
    cdef double total = 0.0
    d.mixed = 0
    for i in range(d.n):
        sums[i] = total
        total += fabs(d.point[i].mass)
        d.mixed += d.point[i].mass < 0.0
    sums[d.n] = total


cdef double digest_below(Digest* d, double* sums, double x) noexcept nogil:
    """Return the weight of the values below x, given digest_sums().

    A point counts where it is. Half of a mixed centroid lies evenly between the mixed one before it (or the smallest
    value) and itself, half towards the next (or the largest value).
    """
    cdef int32_t low = 0, high = d.n, middle, left, right
    cdef double a, b, t, below
    cdef Point* p = d.point
    if d.n == 0 or x <= d.lo:
        return 0.0
    if x > d.hi:
        return sums[d.n]
    while low < high:
        middle = (low + high) >> 1
        if p[middle].at < x:
            low = middle + 1
        else:
            high = middle
    below = sums[low]
    if d.mixed == 0:
        return below
    left = low - 1
    while left >= 0 and p[left].mass > 0.0:
        left -= 1
    right = low
    while right < d.n and p[right].mass > 0.0:
        right += 1
    a = p[left].at if left >= 0 else d.lo
    b = p[right].at if right < d.n else d.hi
    t = (x - a) / (b - a) if b > a else 0.0
    if left >= 0:
        below += 0.5 * p[left].mass * (1.0 - t)
    if right < d.n:
        below -= 0.5 * p[right].mass * t
    return below


cdef double digest_at(Digest* d, double weight) noexcept nogil:
    """Return the value with this much weight below it, the inverse of digest_below(); the digest is flushed."""
    cdef int32_t i, right = -1
    cdef double last = d.lo, a = d.lo, b, half = 0.0, slope = 0.0, part
    cdef Point* p = d.point
    for i in range(d.n + 1):
        if right < i:
            right = i
            while right < d.n and p[right].mass > 0.0:
                right += 1
            b = p[right].at if right < d.n else d.hi
            half -= 0.5 * p[right].mass if right < d.n else 0.0
            slope = half / (b - a) if b > a else 0.0
            if b <= a and half > 0.0:
                if weight < half:
                    return b
                weight -= half
        b = p[i].at if i < d.n else d.hi
        part = slope * (b - last)
        if weight < part:
            return last + weight / slope
        weight -= part
        last = b
        if i == d.n:
            break
        if p[i].mass > 0.0:
            if weight < p[i].mass:
                return b
            weight -= p[i].mass
        else:
            a = b
            half = -0.5 * p[i].mass
    return d.hi


cdef class TDigest:
    """Sketch one distribution.

    Parameters
    ----------
    compression
        About the number of centroids kept; the rank error falls with its square at the ends of the distribution.

    """

    def __cinit__(self, double compression=100.0):
        if not compression >= 10.0:
            raise ParameterError(f"The 'compression' parameter of TDigest must be a float >= 10. Got {compression!r} instead.")
        self.compression = compression

    def __dealloc__(self):
        digest_clear(&self.d)

    def add(self, double x, double w=1.0):
        """Add a finite value with weight w > 0."""
        if not isfinite(x) or not (isfinite(w) and w > 0.0):
            raise DataError(f"a digest takes finite values with weights above 0, not {x!r} with {w!r}")
        if not reserve_value(&self.d):
            raise MemoryError
        digest_add(&self.d, x, w, self.compression)

    def update(self, values):
        """Add many values."""
        cdef const double[::1] xs = np.ascontiguousarray(values, dtype=np.float64).ravel()
        cdef Py_ssize_t i
        if not np.isfinite(xs).all():
            raise DataError("a digest takes finite values only")
        for i in range(xs.shape[0]):
            if not reserve_value(&self.d):
                raise MemoryError
            digest_add(&self.d, xs[i], 1.0, self.compression)

    def merge(self, TDigest other not None):
        """Add the content of another digest."""
        if other is self:
            raise DataError("a digest cannot be merged into itself")
        if not digest_merge(&self.d, &other.d, self.compression):
            raise MemoryError

    def cdf(self, values):
        """Return the share of the weight strictly below each value."""
        cdef const double[::1] xs = np.ascontiguousarray(values, dtype=np.float64).ravel()
        out = np.zeros(xs.shape[0])
        cdef double[::1] share = out
        cdef Py_ssize_t i
        digest_flush(&self.d, self.compression)
        cdef double[::1] sums = np.zeros(self.d.n + 1)
        digest_sums(&self.d, &sums[0])
        for i in range(xs.shape[0]):
            share[i] = digest_below(&self.d, &sums[0], xs[i]) / self.d.total if self.d.total > 0.0 else 0.0
        return out

    def quantile(self, q):
        """Return the quantile for each q in [0, 1]."""
        cdef const double[::1] qs = np.ascontiguousarray(q, dtype=np.float64).ravel()
        out = np.full(qs.shape[0], np.nan)
        cdef double[::1] value = out
        cdef Py_ssize_t i
        digest_flush(&self.d, self.compression)
        for i in range(qs.shape[0]):
            if not 0.0 <= qs[i] <= 1.0:
                raise DataError(f"a share lies between 0 and 1, not {qs[i]!r}")
            if self.d.n:
                value[i] = digest_at(&self.d, qs[i] * self.d.total)
        return out

    @property
    def total(self):
        """Return the weight added so far."""
        return self.d.total

    def __len__(self):
        digest_flush(&self.d, self.compression)
        return self.d.n

    def centroids(self):
        """Return (values, weights, whether all values of the centroid are equal), ascending."""
        digest_flush(&self.d, self.compression)
        at = np.array([self.d.point[i].at for i in range(self.d.n)])
        mass = np.array([self.d.point[i].mass for i in range(self.d.n)])
        return at, np.abs(mass), mass > 0.0

    def __getstate__(self):
        points = [(self.d.point[i].at, self.d.point[i].mass) for i in range(self.d.n + self.d.held)]
        return (self.compression, self.d.total, self.d.lo, self.d.hi, self.d.n, points)

    def __setstate__(self, state):
        if not digest_reserve(&self.d, len(state[5])):
            raise MemoryError
        self.compression, self.d.total, self.d.lo, self.d.hi, self.d.n, points = state
        self.d.held = <int32_t> (len(points) - self.d.n)
        for i, (at, mass) in enumerate(points):
            self.d.point[i].at = at
            self.d.point[i].mass = mass

    def __reduce__(self):
        return TDigest, (self.compression,), self.__getstate__()
