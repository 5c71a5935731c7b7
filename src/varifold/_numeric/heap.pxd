from libc.stdint cimport int32_t

# A binary heap of slots by an external key, smallest key on top; among equal keys the larger slot.
cdef struct Heap:
    Py_ssize_t n
    Py_ssize_t capacity
    int32_t* item       # position -> slot
    int32_t* place      # slot -> position + 1, 0 when not in the heap
    double* key         # slot-indexed keys, owned by the caller, `stride` apart
    Py_ssize_t stride

cdef inline double heap_key(Heap* h, int32_t slot) noexcept nogil:
    cdef double k = h.key[slot * h.stride]
    return k if k >= 0.0 else -k

cdef inline bint heap_less(Heap* h, int32_t a, int32_t b) noexcept nogil:
    cdef double ka = heap_key(h, a), kb = heap_key(h, b)
    return ka < kb or (ka == kb and a > b)

cdef inline void heap_set(Heap* h, Py_ssize_t i, int32_t slot) noexcept nogil:
    h.item[i] = slot
    h.place[slot] = <int32_t> (i + 1)

cdef inline void heap_up(Heap* h, Py_ssize_t i) noexcept nogil:
    cdef int32_t slot = h.item[i]
    cdef Py_ssize_t parent
    while i > 0:
        parent = (i - 1) >> 1
        if not heap_less(h, slot, h.item[parent]):
            break
        heap_set(h, i, h.item[parent])
        i = parent
    heap_set(h, i, slot)

cdef inline void heap_down(Heap* h, Py_ssize_t i) noexcept nogil:
    cdef int32_t slot = h.item[i]
    cdef Py_ssize_t child
    while True:
        child = 2 * i + 1
        if child >= h.n:
            break
        if child + 1 < h.n and heap_less(h, h.item[child + 1], h.item[child]):
            child += 1
        if not heap_less(h, h.item[child], slot):
            break
        heap_set(h, i, h.item[child])
        i = child
    heap_set(h, i, slot)

cdef inline void heap_touch(Heap* h, int32_t slot) noexcept nogil:
    """Insert the slot, or restore the order after its key changed (the only one since the last call)."""
    cdef Py_ssize_t i
    if h.place[slot] == 0:
        h.item[h.n] = slot
        h.n += 1
        heap_up(h, h.n - 1)
    else:
        i = h.place[slot] - 1
        heap_up(h, i)
        heap_down(h, h.place[slot] - 1)

cdef inline void heap_order(Heap* h) noexcept nogil:
    """Restore the order of the heap after many keys changed."""
    cdef Py_ssize_t i
    for i in range(h.n // 2 - 1, -1, -1):
        heap_down(h, i)

cdef inline void heap_drop(Heap* h, int32_t slot) noexcept nogil:
    cdef Py_ssize_t i = h.place[slot] - 1
    cdef int32_t last
    if i < 0:
        return
    h.place[slot] = 0
    h.n -= 1
    if i == h.n:
        return
    last = h.item[h.n]
    heap_set(h, i, last)
    heap_up(h, i)
    heap_down(h, h.place[last] - 1)
