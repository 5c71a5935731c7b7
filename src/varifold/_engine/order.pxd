from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define varifold_lowest_bit(b) __builtin_ctzll(b)
    #else
    static inline int varifold_lowest_bit(unsigned long long b) { int k = 0; while (!(b & 1)) { b >>= 1; k++; } return k; }
    #endif
    """
    int lowest_bit "varifold_lowest_bit"(uint64_t) noexcept nogil

# Slots below this are ordered by a bitmap; `dense` scratch given to sort_pairs has this many places.
cdef enum:
    BITMAP_SLOTS = 2048
    BITMAP_WORDS = 32

# Rows of blocks over spaces up to this size are ordered by marks, a bit a slot.
cdef enum:
    MARKED_SLOTS = 16384
    MARKED_WORDS = 256

# The slots of a block's row ascending, each with its value; ids that map to slot 0 are left out. `marks` is all zeros
# before and after, `place` has room for every slot. Returns how many came out. Written without branches on the data:
# the words that hold marks are listed first, then as many marks taken from them as there are.
cdef inline Py_ssize_t order_row(Py_ssize_t m, const int32_t* ids, const double* value, const int32_t* slot_of,
                                 Py_ssize_t slots, uint64_t* marks, int32_t* place,
                                 int32_t* out_slot, double* out_value) noexcept nogil:
    cdef Py_ssize_t k, p = 0, n = 0, words = (slots + 63) >> 6
    cdef int32_t s
    cdef uint64_t word = 0, after
    cdef bint last
    cdef uint64_t held[MARKED_WORDS + 2]
    cdef int32_t base[MARKED_WORDS + 2]
    if words == 1:
        for k in range(m):
            s = slot_of[ids[k]]
            place[s] = <int32_t> k
            word |= (<uint64_t> 1) << s
            n += s != 0
        word &= ~(<uint64_t> 1)
        for k in range(n):
            s = <int32_t> lowest_bit(word)
            out_slot[k] = s
            out_value[k] = value[place[s]]
            word &= word - 1
        return n
    for k in range(m):
        s = slot_of[ids[k]]
        place[s] = <int32_t> k
        marks[s >> 6] |= (<uint64_t> 1) << (s & 63)
        n += s != 0
    marks[0] &= ~(<uint64_t> 1)
    for k in range(words):
        held[p] = marks[k]
        base[p] = <int32_t> (64 * k)
        p += marks[k] != 0
    memset(marks, 0, words * sizeof(uint64_t))
    held[p] = 0
    held[p + 1] = 0
    base[p] = 0
    p = 0
    word = held[0]
    after = held[1]
    for k in range(n):
        s = base[p] + <int32_t> lowest_bit(word)
        out_slot[k] = s
        out_value[k] = value[place[s]]
        word &= word - 1
        last = word == 0
        p += last
        word = after if last else word
        after = held[p + 1]
    return n


# Ascending by slot: insertion for the few, a bitmap in a small space, counting passes of eight bits for the many.
cdef inline void sort_pairs(Py_ssize_t n, int32_t* slot, double* value,
                            int32_t* slot2, double* value2, double* dense, int32_t largest) noexcept nogil:
    cdef Py_ssize_t i, j, start
    cdef int32_t s
    cdef double x
    cdef int shift
    cdef uint32_t digit
    cdef uint64_t word
    cdef uint32_t count[256]
    cdef uint64_t bits[BITMAP_WORDS]
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
        return
    if largest < BITMAP_SLOTS and (largest >> 6) <= 2 * n:
        memset(bits, 0, ((largest >> 6) + 1) * sizeof(uint64_t))
        for i in range(n):
            s = slot[i]
            dense[s] = value[i]
            bits[s >> 6] |= (<uint64_t> 1) << (s & 63)
        j = 0
        for i in range((largest >> 6) + 1):
            word = bits[i]
            while word:
                s = <int32_t> (64 * i + lowest_bit(word))
                slot[j] = s
                value[j] = dense[s]
                j += 1
                word &= word - 1
        return
    shift = 0
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
