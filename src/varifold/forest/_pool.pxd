"""Zeroed blocks of one size, allocated in advance, so that learning cannot run out of memory."""

from libc.stdlib cimport free

from varifold._numeric.memory cimport allocate, out_of_memory, resize

cdef struct Pool:
    size_t size          # bytes per block
    Py_ssize_t n, capacity   # blocks held, and capacity for pointers
    void** block


cdef inline int pool_reserve(Pool* p, Py_ssize_t count) except -1 nogil:
    """Hold at least this many blocks."""
    if count > p.capacity:
        if resize(<void**> &p.block, count * sizeof(void*)) < 0:
            return out_of_memory()
        p.capacity = count
    while p.n < count:
        p.block[p.n] = allocate(p.size)
        if p.block[p.n] == NULL:
            return out_of_memory()
        p.n += 1
    return 0


cdef inline void* pool_take(Pool* p) noexcept nogil:
    """Return one of the blocks that pool_reserve() allocated; the caller frees it."""
    p.n -= 1
    return p.block[p.n]


cdef inline void pool_empty(Pool* p, size_t size) noexcept nogil:
    """Free the blocks; later ones have this size."""
    while p.n:
        p.n -= 1
        free(p.block[p.n])
    p.size = size


cdef inline void pool_free(Pool* p) noexcept nogil:
    pool_empty(p, 0)
    free(p.block)
    p.block = NULL
    p.capacity = 0
