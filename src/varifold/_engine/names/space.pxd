from libc.stdint cimport int32_t, int64_t, uint64_t

from varifold._engine.names.table cimport NameTable

# Two words a feature, so that an update is one load and one store: first seen (44 bits) above the high 20 bits of the
# count, last seen (44 bits) above its low 20 bits. Read and written through the functions below.
cdef struct Seen:
    uint64_t packed_first
    uint64_t packed_last

cdef enum:
    COUNT_BITS = 20

cdef inline int64_t seen_first(Seen* s) noexcept nogil:
    """Return the step at which the slot was first learned, 0 before that."""
    return <int64_t> (s.packed_first >> COUNT_BITS)

cdef inline int64_t seen_last(Seen* s) noexcept nogil:
    return <int64_t> (s.packed_last >> COUNT_BITS)

cdef inline int64_t seen_count(Seen* s) noexcept nogil:
    """Return how many learned instances had the slot; 0 means that it is new in this one."""
    cdef uint64_t low = (1 << COUNT_BITS) - 1
    return <int64_t> (((s.packed_first & low) << COUNT_BITS) | (s.packed_last & low))

cdef inline void seen_set(Seen* s, int64_t first, int64_t last, int64_t count) noexcept nogil:
    cdef uint64_t low = (1 << COUNT_BITS) - 1
    s.packed_first = (<uint64_t> first << COUNT_BITS) | (<uint64_t> count >> COUNT_BITS)
    s.packed_last = (<uint64_t> last << COUNT_BITS) | (<uint64_t> count & low)

cdef inline void seen_again(Seen* s, int64_t now) noexcept nogil:
    """Do seen_touch() for a slot that was seen before."""
    cdef uint64_t low = ((s.packed_last & ((1 << COUNT_BITS) - 1)) + 1)
    if low >> COUNT_BITS:
        s.packed_first += 1
        low = 0
    s.packed_last = (<uint64_t> now << COUNT_BITS) | low

cdef inline void seen_touch(Seen* s, int64_t now) noexcept nogil:
    """Record that the instance learned at step `now` had the slot."""
    if s.packed_first == 0:
        s.packed_first = <uint64_t> now << COUNT_BITS
    seen_again(s, now)

cdef class Space(NameTable):
    cdef Seen* seen
    cdef Py_ssize_t seen_capacity
    cdef readonly int64_t step       # instances learned
    cdef public int64_t evictions   # features evicted so far
