from libc.stdint cimport int32_t

# A merging t-digest in one flat array: ascending centroids, then buffered values in order of arrival.
cdef enum:
    BUFFER = 32        # values buffered before they are merged

cdef struct Point:
    double at
    double mass        # negative: a centroid of unequal values with weight |mass|

cdef struct Digest:
    Point* point
    double total       # weight added so far
    double lo
    double hi
    int32_t n          # centroids
    int32_t held       # buffered values after them
    int32_t capacity
    int32_t mixed      # centroids of unequal values, as counted by digest_sums()

cdef void digest_clear(Digest* d) noexcept nogil
cdef void digest_flush(Digest* d, double compression) noexcept nogil
cdef bint digest_merge(Digest* d, Digest* other, double compression) noexcept nogil
cdef void digest_sums(Digest* d, double* sums) noexcept nogil
cdef double digest_below(Digest* d, double* sums, double x) noexcept nogil
cdef double digest_at(Digest* d, double weight) noexcept nogil
cdef bint digest_reserve(Digest* d, Py_ssize_t capacity) noexcept nogil


cdef enum:
    FIRST_CAPACITY = 8    # capacity of a digest after its first value, in points


cdef inline bint digest_is_full(Digest* d) noexcept nogil:
    """Return whether one more value needs more capacity."""
    return d.n + d.held == d.capacity


cdef inline void digest_add(Digest* d, double x, double w, double compression) noexcept nogil:
    """Add a value, for which there is capacity; the buffer is merged once it holds BUFFER values."""
    cdef Point* p = &d.point[d.n + d.held]
    p.at = x
    p.mass = w
    if d.total == 0.0 or x < d.lo:
        d.lo = x
    if d.total == 0.0 or x > d.hi:
        d.hi = x
    d.held += 1
    d.total += w
    if d.held == BUFFER:
        digest_flush(d, compression)


cdef class TDigest:
    cdef Digest d
    cdef readonly double compression
