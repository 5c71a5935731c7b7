"""Numbers packed without loss: words of eight bytes as runs of zeros, of words seen before, and of new words.

State is full of repetition: rows that list the same features, matrices that are symmetric, values that one part of a
model keeps by row and another by column. A token says what comes next, by its three highest bits, and how many words of
it, by the other five:

- ZEROS: that many zeros;
- COPY: that many words as they stand a distance before, which follows the token; the two may overlap;
- APART: the same with every second, third, ... word of what stands there, forwards or backwards: the step follows;
- SHORT: that many words, given as numbers of single precision: those of double precision that are equal to one;
- WHOLE: that many words, given whole.

A count of 31 says that the rest of it follows. What follows has seven bits per byte, the lowest first, and the eighth
says that there are more; a step s stands as 2s, or as -2s - 1 if it is negative.
"""

import numpy as np

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from varifold._numeric.memory cimport allocate

cdef enum Kind:
    ZEROS = 0
    COPY = 32
    APART = 64
    SHORT = 96
    WHOLE = 128

cdef enum:
    FULL = 31            # a count in the token itself is below it
    LONGEST = 24         # bytes of a token and what follows it

cdef uint64_t CUT = <uint64_t> 1 << 60    # larger than any count, distance or step

cdef struct Cursor:
    uint8_t* at
    uint8_t* end


cdef inline void write_rest(Cursor* out, uint64_t n) noexcept nogil:
    """Seven bits per byte."""
    while n >= 128:
        out.at[0] = <uint8_t> (n & 127 | 128)
        out.at += 1
        n >>= 7
    out.at[0] = <uint8_t> n
    out.at += 1


cdef inline void write_token(Cursor* out, int kind, uint64_t count) noexcept nogil:
    out.at[0] = <uint8_t> (kind | <int> min(count, <uint64_t> FULL))
    out.at += 1
    if count >= FULL:
        write_rest(out, count - FULL)


cdef inline uint64_t read_rest(Cursor* given) noexcept nogil:
    """What write_rest() wrote; CUT when it does not end."""
    cdef uint64_t n = 0
    cdef int shift = 0
    while given.at < given.end and shift < 56:
        n |= <uint64_t> (given.at[0] & 127) << shift
        given.at += 1
        if given.at[-1] < 128:
            return n
        shift += 7
    return CUT


cdef inline bint is_short(uint64_t word, float* single) noexcept nogil:
    """Whether the word is a number that single precision holds to the bit; gives it."""
    cdef double number
    memcpy(&number, &word, 8)
    single[0] = <float> number
    number = single[0]
    return memcmp(&number, &word, 8) == 0


cdef void write_new(Cursor* out, const uint64_t* words, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Words not seen before, those that are short apart from the others."""
    cdef Py_ssize_t i = start, j
    cdef float single
    cdef uint8_t* head
    while i < stop:
        j = i
        while j < stop and j - i < FULL - 1 and not is_short(words[j], &single):
            j += 1
        if j > i:
            write_token(out, WHOLE, j - i)
            memcpy(out.at, words + i, 8 * (j - i))
            out.at += 8 * (j - i)
        i = j
        head = out.at
        out.at += 1
        while j < stop and j - i < FULL - 1 and is_short(words[j], &single):
            memcpy(out.at, &single, 4)
            out.at += 4
            j += 1
        head[0] = <uint8_t> (SHORT | (j - i))
        if j == i:
            out.at -= 1
        i = j


cdef inline uint64_t hash_of(uint64_t word, int bits) noexcept nogil:
    return (word * <uint64_t> 0x9E3779B97F4A7C15) >> (64 - bits)


cdef inline Py_ssize_t run_of(const uint64_t* words, Py_ssize_t n, Py_ssize_t i, Py_ssize_t seen,
                              Py_ssize_t step) noexcept nogil:
    """How many words from i on equal those at seen, seen + step, ..., which must come before them."""
    cdef Py_ssize_t j = i
    while j < n and 0 <= seen < j and words[j] == words[seen]:
        j += 1
        seen += step
    return j - i


cdef Py_ssize_t write_copy(Cursor* out, const uint64_t* words, Py_ssize_t n, Py_ssize_t i, Py_ssize_t seen,
                           Py_ssize_t next_seen) noexcept nogil:
    """A copy of what stands at `seen`, with the step to `next_seen` if that gives more; returns how many words."""
    cdef Py_ssize_t count = run_of(words, n, i, seen, 1), step = next_seen - seen
    cdef Py_ssize_t apart = run_of(words, n, i, seen, step) if next_seen >= 0 and step != 1 else 0
    if apart > count:
        write_token(out, APART, apart)
        write_rest(out, i - seen)
        write_rest(out, 2 * step if step >= 0 else -2 * step - 1)
        return apart
    write_token(out, COPY, count)
    write_rest(out, i - seen)
    return count


cdef void write_all(Cursor* out, const uint64_t* words, Py_ssize_t n, int32_t* last, int bits) noexcept nogil:
    """The words; `last` is a table, of -1 at first, of where a word with this hash stands."""
    cdef Py_ssize_t i = 0, j, new = 0, count
    cdef uint64_t place
    cdef int32_t seen
    while i < n:
        count = 0
        while i + count < n and words[i + count] == 0:
            count += 1
        if count:
            write_new(out, words, new, i)
            write_token(out, ZEROS, count)
        else:
            place = hash_of(words[i], bits)
            seen = last[place]
            last[place] = <int32_t> i
            if seen >= 0 and words[seen] == words[i]:
                write_new(out, words, new, i)
                count = write_copy(out, words, n, i, seen, last[hash_of(words[i + 1], bits)] if i + 1 < n else -1)
        if count:
            new = i + count
        i += max(count, 1)
    write_new(out, words, new, n)


def pack(const uint64_t[::1] words):
    """The words as bytes; at most 2^31 of them."""
    cdef Py_ssize_t i, n = words.shape[0]
    cdef int bits = 4
    cdef Cursor out
    cdef int32_t* last
    cdef uint8_t[::1] room
    if n == 0:
        return b""
    if n >= 1 << 31:
        raise ValueError(f"{8 * n:,} bytes of state are more than a file can hold")
    while 1 << bits < 2 * n:
        bits += 1
    room = np.empty(9 * n + LONGEST, dtype=np.uint8)    # a token and a whole word for each
    last = <int32_t*> allocate((<Py_ssize_t> 1 << bits) * sizeof(int32_t))
    if last == NULL:
        raise MemoryError
    out.at = &room[0]
    with nogil:
        for i in range(<Py_ssize_t> 1 << bits):
            last[i] = -1
        write_all(&out, &words[0], n, last, bits)
    free(last)
    return bytes(room[:out.at - &room[0]])


cdef bint read_copy(Cursor* given, uint64_t* words, Py_ssize_t at, Py_ssize_t count, bint apart) noexcept nogil:
    """Copy words that stand before; False for damaged data."""
    cdef uint64_t distance = read_rest(given), coded = read_rest(given) if apart else 2
    cdef Py_ssize_t i, step, seen
    if distance == 0 or distance > <uint64_t> at or coded > <uint64_t> 1 << 40:
        return False
    step = <Py_ssize_t> (coded >> 1) if not coded & 1 else -<Py_ssize_t> (coded >> 1) - 1
    seen = at - <Py_ssize_t> distance
    for i in range(at, at + count):
        if not 0 <= seen < i:
            return False
        words[i] = words[seen]
        seen += step
    return True


cdef Py_ssize_t read_token(Cursor* given, uint64_t* words, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Read a token and its words to words[at], zeros before; returns the place after them, -1 for damaged data."""
    cdef int kind = given.at[0] & 224
    cdef uint64_t count = given.at[0] & FULL
    cdef Py_ssize_t i
    cdef float single
    cdef double number
    given.at += 1
    if count == FULL:
        count += read_rest(given)
    if count == 0 or count > <uint64_t> (n - at):
        return -1
    if kind == COPY or kind == APART:
        if not read_copy(given, words, at, <Py_ssize_t> count, kind == APART):
            return -1
    elif kind == SHORT:
        if <uint64_t> (given.end - given.at) < 4 * count:
            return -1
        for i in range(at, at + <Py_ssize_t> count):
            memcpy(&single, given.at, 4)
            number = single
            memcpy(words + i, &number, 8)
            given.at += 4
    elif kind == WHOLE:
        if <uint64_t> (given.end - given.at) < 8 * count:
            return -1
        memcpy(words + at, given.at, 8 * count)
        given.at += 8 * count
    elif kind != ZEROS:
        return -1
    return at + <Py_ssize_t> count


def unpack(const uint8_t[::1] data, Py_ssize_t n):
    """The n words that pack() packed; ValueError for data that does not hold exactly so many."""
    cdef uint64_t[::1] words = np.zeros(n, dtype=np.uint64)
    cdef Py_ssize_t at = 0
    cdef Cursor given
    if data.shape[0]:
        given.at = <uint8_t*> &data[0]
        given.end = given.at + data.shape[0]
        with nogil:
            while at >= 0 and given.at < given.end:
                at = read_token(&given, &words[0] if n else NULL, at, n)
    if at != n:
        raise ValueError(f"the packed data does not hold {n} words")
    return np.asarray(words)
