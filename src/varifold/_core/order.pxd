from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy, memset

# Ascending by slot: insertion for the few, counting passes of eight bits for the many.
cdef inline void sort_pairs(Py_ssize_t n, int32_t* slot, double* value,
                            int32_t* slot2, double* value2, int32_t largest) noexcept nogil:
    cdef Py_ssize_t i, j, start
    cdef int32_t s
    cdef double x
    cdef int shift
    cdef uint32_t digit
    cdef Py_ssize_t count[256]
    for i in range(1, n):
        if slot[i] < slot[i - 1]:
            break
    else:
        return
    if n <= 12:
        for i in range(1, n):
            s = slot[i]
            x = value[i]
            j = i - 1
            while j >= 0 and slot[j] > s:
                slot[j + 1] = slot[j]
                value[j + 1] = value[j]
                j -= 1
            slot[j + 1] = s
            value[j + 1] = x
        return
    shift = 0
    while (largest >> shift) != 0:
        memset(count, 0, sizeof(count))
        for i in range(n):
            count[(slot[i] >> shift) & 255] += 1
        start = 0
        for j in range(256 if (largest >> shift) > 255 else (largest >> shift) + 1):
            i = count[j]
            count[j] = start
            start += i
        for i in range(n):
            digit = (slot[i] >> shift) & 255
            j = count[digit]
            count[digit] = j + 1
            slot2[j] = slot[i]
            value2[j] = value[i]
        memcpy(slot, slot2, n * sizeof(int32_t))
        memcpy(value, value2, n * sizeof(double))
        shift += 8


cdef inline Py_ssize_t sort_unique(Py_ssize_t n, int32_t* item) noexcept nogil:
    """Ascending without repeats, in place; for short lists. Returns how many are left."""
    cdef Py_ssize_t i, j
    cdef int32_t s
    for i in range(1, n):
        s = item[i]
        j = i - 1
        while j >= 0 and item[j] > s:
            item[j + 1] = item[j]
            j -= 1
        item[j + 1] = s
    j = 0
    for i in range(n):
        if i == 0 or item[i] != item[i - 1]:
            item[j] = item[i]
            j += 1
    return j
