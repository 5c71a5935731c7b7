from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from varifold._numeric.bits cimport counts_bits, popcount_by

# Rows are ordered by marks, a bit a slot, in spaces up to this size, unless they have very few of its slots.
cdef enum:
    MARKED_SLOTS = 16384
    MARKED_WORDS = 256


cdef inline bint by_marks(Py_ssize_t n, Py_ssize_t slots) noexcept nogil:
    """Return whether marks are the fastest way to order n of this many slots."""
    return slots <= MARKED_SLOTS and slots <= 128 * (n + 1)


cdef inline Py_ssize_t place_marked(Py_ssize_t n, const int32_t* slot, const double* value, Py_ssize_t slots,
                                    uint64_t* marks, Py_ssize_t first, int32_t* out_slot, double* out_value) noexcept nogil:
    """Write pairs whose slots are marked, ascending by slot, from `first` on; return the position after the last.

    A slot's position is the number of marks below it: no step waits for the one before, nothing branches on the data.
    Clears the marks.
    """
    cdef Py_ssize_t k, place, words = (slots + 63) >> 6
    cdef uint32_t s
    cdef bint quick = counts_bits()
    cdef Py_ssize_t before[MARKED_WORDS]   # the position of a word's first mark, less one
    for k in range(words):
        before[k] = first - 1
        first += popcount_by(quick, marks[k])
    for k in range(n):
        s = slot[k]
        place = before[s >> 6] + popcount_by(quick, marks[s >> 6] << (~s & 63))
        out_slot[place] = s
        out_value[place] = value[k]
    memset(marks, 0, words * sizeof(uint64_t))
    return first


cdef inline Py_ssize_t order_row(Py_ssize_t m, const int32_t* ids, const double* value, const int32_t* slot_of,
                                 Py_ssize_t slots, uint64_t* marks, int32_t* found,
                                 int32_t* out_slot, double* out_value) noexcept nogil:
    """Write the slots of a block's row, ascending, and their values; return how many ids have a slot.

    `marks` is zero before and after, `found` is scratch for m slots. Position -1 of the outputs may be overwritten.
    """
    cdef Py_ssize_t k
    cdef uint32_t s
    for k in range(m):
        s = slot_of[ids[k]]
        found[k] = s
        marks[s >> 6] |= (<uint64_t> 1) << (s & 63)
    # ids without a slot have slot 0, so they are sorted before the others
    return place_marked(m, found, value, slots, marks, -<Py_ssize_t> (marks[0] & 1), out_slot, out_value)


cdef inline void sort_pairs(Py_ssize_t n, int32_t* slot, double* value, int32_t* slot2, double* value2,
                            uint64_t* marks, int32_t largest) noexcept nogil:
    """Sort by slot, none of them twice: insertion for the few, marks, or passes of eight bits."""
    cdef Py_ssize_t i, j
    cdef int32_t s
    cdef double x
    for i in range(1, n):
        if slot[i] < slot[i - 1]:
            break
    else:
        return
    if n <= 8:
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
    elif by_marks(n, largest + 1):
        for i in range(n):
            marks[slot[i] >> 6] |= (<uint64_t> 1) << (slot[i] & 63)
        memcpy(slot2, slot, n * sizeof(int32_t))
        memcpy(value2, value, n * sizeof(double))
        place_marked(n, slot2, value2, largest + 1, marks, 0, slot, value)
    else:
        sort_by_bytes(n, slot, value, slot2, value2, largest)


cdef inline void sort_by_bytes(Py_ssize_t n, int32_t* slot, double* value, int32_t* slot2, double* value2,
                               int32_t largest) noexcept nogil:
    """Sort by slot, in counting passes of eight bits."""
    cdef Py_ssize_t i, j, start
    cdef int shift = 0
    cdef uint32_t digit
    cdef uint32_t count[256]
    while (largest >> shift) != 0:
        memset(count, 0, sizeof(count))
        for i in range(n):
            count[(slot[i] >> shift) & 255] += 1
        start = 0
        for j in range(256 if (largest >> shift) > 255 else (largest >> shift) + 1):
            i = count[j]
            count[j] = <uint32_t> start
            start += i
        for i in range(n):
            digit = (slot[i] >> shift) & 255
            j = count[digit]
            count[digit] += 1
            slot2[j] = slot[i]
            value2[j] = value[i]
        memcpy(slot, slot2, n * sizeof(int32_t))
        memcpy(value, value2, n * sizeof(double))
        shift += 8


cdef inline Py_ssize_t sort_unique(Py_ssize_t n, int32_t* item) noexcept nogil:
    """Sort a short list and drop repeats, in place; return how many are left."""
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
